"""What a request and its answer are, apart from how they are sent."""
