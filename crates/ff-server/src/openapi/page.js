// Shows /openapi.json: routes by group, what they take and answer, and every code they refuse with.
"use strict";

const at = (id) => document.getElementById(id);

/** An element with a class and what is in it. Texts stay texts: nothing of the document becomes markup. */
function make(name, kind, ...inside) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...inside.filter((part) => part !== null && part !== undefined));
  return element;
}

/** A text whose words between backticks are code. */
function prose(text, name = "p", kind = "") {
  const parts = String(text || "").split("`").map((part, index) => (index % 2 ? make("code", "", part) : part));
  return make(name, kind, ...parts);
}

let api;
const known = (reference) => reference.split("/").slice(1).reduce((value, name) => value[name], api);

/** The schema behind a reference, and the name it goes by. */
function resolved(schema) {
  return schema && schema.$ref ? { schema: known(schema.$ref), name: schema.$ref.split("/").pop() } : { schema: schema || {}, name: "" };
}

const isNull = (schema) => schema.type === "null";

/** A type in a few words: `string 1..64`, `Lane or null`, `array of Task`. */
function typeOf(given) {
  const { schema, name } = resolved(given);
  if (name && (schema.properties || schema.oneOf || schema.allOf)) return name;
  const choice = schema.oneOf || schema.anyOf;
  if (choice) return choice.map(typeOf).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  const types = [].concat(schema.type || "any JSON");
  const shown = types.map((type) => {
    if (type === "array") return `array of ${typeOf(schema.items)}`;
    if (type === "object" && schema.additionalProperties && !schema.properties) return `map to ${typeOf(schema.additionalProperties)}`;
    return type;
  });
  const [low, high] = [schema.minimum ?? schema.minLength ?? schema.minItems, schema.maximum ?? schema.maxLength ?? schema.maxItems];
  const bounds = low !== undefined || high !== undefined ? ` ${low ?? ""}..${high ?? ""}` : "";
  const format = schema.format && schema.format !== "int64" && schema.format !== "int32" ? ` (${schema.format})` : "";
  return `${shown.join(" or ")}${format}${bounds}${schema.pattern ? ` ${schema.pattern}` : ""}`;
}

/** The parts of a schema that have fields of their own, without null. */
function structured(given) {
  const { schema, name } = resolved(given);
  if (schema.items) return structured(schema.items);
  const choice = schema.oneOf || schema.anyOf;
  if (choice) return choice.filter((one) => !isNull(one)).flatMap(structured);
  if (schema.allOf) return [{ name, schema: schema.allOf.map((one) => resolved(one).schema).reduce(together, {}) }];
  if (schema.properties) return [{ name, schema }];
  return schema.additionalProperties && schema.additionalProperties !== true ? structured(schema.additionalProperties) : [];
}

function together(one, other) {
  return {
    properties: { ...one.properties, ...other.properties },
    required: [...(one.required || []), ...(other.required || [])],
  };
}

/** What a field is: its own words, or those of its type. */
function aboutOf(given) {
  if (given.description) return given.description;
  const one = (given.oneOf || given.anyOf || []).find((choice) => !isNull(choice));
  return one ? aboutOf(one) : resolved(given).schema.description;
}

/** The fields of a schema; those with fields of their own open when they are asked for. */
function shape(given) {
  return structured(given).map(({ name, schema }) => {
    const asked = schema.required || [];
    const first = ([one], [other]) => asked.includes(other) - asked.includes(one);
    const fields = Object.entries(schema.properties || {}).sort(first).map(([field, inner]) => {
      const must = asked.includes(field) ? make("span", "must", " *") : null;
      const line = make("div", "field", make("code", "", field), must, " ", make("span", "type", typeOf(inner)), prose(aboutOf(inner), "span", "dim"));
      if (structured(inner).length) line.append(later(inner));
      return line;
    });
    return make("div", "shape", name ? make("div", "dim", name) : null, ...fields);
  });
}

function later(schema) {
  const more = make("details", "shape", make("summary", "dim", "fields"));
  more.addEventListener("toggle", () => more.append(...shape(schema)), { once: true });
  return more;
}

function row(...cells) {
  return make("tr", "", ...cells.map((cell) => make("td", "", cell)));
}

function parameters(operation) {
  const given = operation.parameters || [];
  if (!given.length) return [];
  const rows = given.map((one) => {
    const name = make("span", "", make("code", "", one.name), one.required ? make("span", "must", " *") : null);
    return row(name, make("span", "dim", one.in), make("span", "type", typeOf(one.schema)), prose(one.description || resolved(one.schema).schema.description, "span"));
  });
  return [make("h3", "", "Parameters"), make("table", "", ...rows)];
}

function content(media, item) {
  return Object.entries(media || {}).flatMap(([type, { schema }]) => {
    const line = make("div", "", make("code", "", type), " ", make("span", "type", schema ? typeOf(schema) : ""));
    const each = item && !type.endsWith("json") ? [make("div", "dim", "each:"), ...shape(item)] : [];
    return [line, ...(schema ? shape(schema) : []), ...each];
  });
}

function answers(operation) {
  const all = Object.entries(operation.responses || {}).map(([status, given]) => [status, given.$ref ? known(given.$ref) : given]);
  const isRefusal = ([, one]) => Boolean(one.content && one.content["application/problem+json"]);
  const good = all.filter((one) => !isRefusal(one)).flatMap(([status, one]) => [
    make("div", "", make("strong", "", status), " ", prose(one.description, "span", "dim")),
    ...content(one.content, operation["x-ff-item"]),
  ]);
  const rows = all.filter(isRefusal).flatMap(([status, one]) => {
    const codes = one.content["application/problem+json"].schema.allOf[1].properties.code.enum;
    return codes.map((code) => row(status, make("code", "", code), prose(api["x-ff-codes"][code].meaning, "span")));
  });
  return [make("h3", "", "Answers"), ...good, ...(rows.length ? [make("h3", "", "Refusals"), make("table", "", ...rows)] : [])];
}

function access(operation) {
  if (operation["x-ff-role"]) return `One of the roles ${operation["x-ff-role"].map((role) => `\`${role}\``).join(", ")}.`;
  return operation.security.length ? "Under the token of a waitpoint." : "Without credentials.";
}

function body(operation) {
  const about = operation.description ? [prose(operation.description)] : [];
  const inside = [...about, prose(access(operation), "p", "dim"), ...parameters(operation)];
  if (operation.requestBody) inside.push(make("h3", "", "Body"), ...content(operation.requestBody.content));
  return [...inside, ...answers(operation)];
}

function route(path, method, operation) {
  const head = make("summary", "", make("span", `method ${method}`, method), make("span", "path", path), make("span", "dim", operation.summary || ""));
  const shown = make("details", "route", head);
  shown.id = operation.operationId;
  shown.addEventListener("toggle", () => shown.append(...body(operation)), { once: true });
  const codes = JSON.stringify(operation.responses).match(/responses\/\w+/g) || [];
  const words = [path, method, operation.summary, operation.description, operation.operationId, ...(operation.parameters || []).map((one) => one.name)];
  const named = codes.map((code) => Object.values(known(`#/components/${code}`).content)[0].schema.allOf[1].properties.code.enum.join(" "));
  shown.dataset.words = [...words, ...named].join(" ").toLowerCase();
  return shown;
}

function render() {
  const groups = new Map((api.tags || []).map((tag) => [tag.name, { about: tag.description || "", routes: [] }]));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      // A route whose group is not described is shown all the same.
      const name = (operation.tags || [])[0] || "other";
      if (!groups.has(name)) groups.set(name, { about: "", routes: [] });
      groups.get(name).routes.push(route(path, method.toUpperCase(), operation));
    }
  }
  const sections = [...groups].map(([name, group]) => {
    const title = make("h2", "", name);
    title.id = `group-${name}`;
    return make("section", "", title, make("p", "about", group.about), ...group.routes);
  });
  const codes = Object.entries(api["x-ff-codes"]).map(([code, { status, meaning }]) => row(String(status), make("code", "", code), prose(meaning, "span")));
  const title = make("h2", "", "codes");
  title.id = "group-codes";
  const about = api.info.description.split("\n\n").map((part) => prose(part, "p", "about"));
  at("routes").replaceChildren(...about, ...sections, make("section", "", title, make("table", "", ...codes)));
  const link = (name) => {
    const to = make("a", "", name);
    to.href = `#group-${name}`;
    return to;
  };
  at("groups").replaceChildren(...[...groups.keys()].map(link), link("codes"));
  open();
}

function search() {
  const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of document.querySelectorAll("section")) {
    const routes = [...section.querySelectorAll("details.route")];
    for (const one of routes) one.classList.toggle("none", !words.every((word) => one.dataset.words.includes(word)));
    section.classList.toggle("none", words.length > 0 && routes.every((one) => one.classList.contains("none")));
  }
}

/** Opens the route that the address names. */
function open() {
  const named = location.hash && at(decodeURIComponent(location.hash.slice(1)));
  if (!named) return;
  if (named.matches("details")) named.open = true;
  named.scrollIntoView();
}

async function load(token) {
  const answer = await fetch("/openapi.json", { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  at("ask").hidden = answer.ok;
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({ detail: answer.statusText }));
    at("refused").textContent = token || answer.status !== 401 ? problem.detail : "";
    return;
  }
  api = await answer.json();
  render();
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  load(at("token").value.trim());
});
at("search").addEventListener("input", search);
addEventListener("hashchange", open);
load();
