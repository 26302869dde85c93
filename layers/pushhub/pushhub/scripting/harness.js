// What stands between the sandbox and a stranger's code, in the same context. It is an expression whose value is the one
// function that the sandbox calls. It keeps what it needs of the built-in objects before that code can change them: the
// code can spoil its own run, and no other one has this context.
(function () {
  "use strict";
  const { parse, stringify } = JSON;
  const { keys } = Object;
  const { isArray } = Array;
  const { construct, apply } = Reflect;
  const RealDate = Date;
  const RealString = String;
  const { slice, charCodeAt } = RealString.prototype;
  const then = Promise.prototype.then;
  const RealPromise = Promise;
  const RealError = Error;
  const imul = Math.imul;
  // An indirect call: it evaluates in the global scope, where the code declares its handler.
  const evaluate = eval;
  const METHODS = ["POST", "PUT", "PATCH"];
  const FORMATS = { object: ["jsonl", "json", "raw"], request: ["json", "raw"] };
  const MOST_HEADERS = 50;

  // One message gives the same result at each try: the time is that of the message, and chance follows from its id.
  let now = 0;
  let state = 0;
  const FixedDate = function Date(...given) {
    if (!new.target) return apply(RealDate.prototype.toString, construct(RealDate, [now]), []);
    return construct(RealDate, given.length ? given : [now], new.target);
  };
  FixedDate.prototype = RealDate.prototype;
  FixedDate.prototype.constructor = FixedDate;
  FixedDate.UTC = RealDate.UTC;
  FixedDate.parse = RealDate.parse;
  FixedDate.now = () => now;
  globalThis.Date = FixedDate;
  // mulberry32.
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  delete globalThis.performance;

  // The stranger's language besides this one; it is loaded before this, if at all.
  const { jsonata } = globalThis;
  delete globalThis.jsonata;
  // Where it looks for what turns text into base64, as in a browser.
  if (jsonata) globalThis.window = { atob: globalThis.atob, btoa: globalThis.btoa };

  class Refused {
    constructor(text) {
      this.text = text;
    }
  }

  let outcome = null;
  let most = 0;

  function told(error) {
    let text = "it threw something that cannot be told";
    try {
      if (error instanceof Refused) return error.text;
      if (error instanceof RealError) text = `${error.name}: ${error.message}`;
      else if (error !== null && typeof error === "object" && typeof error.message === "string") {
        text = error.code ? `${error.code}: ${error.message}` : error.message;
      } else text = `it threw ${RealString(error)}`;
    } catch {
      // Its own conversion failed.
    }
    return apply(slice, text, [0, 500]);
  }

  function fail(error) {
    const message = told(error);
    let kind = error instanceof Refused ? "result" : "error";
    if (message === "InternalError: out of memory") kind = "memory";
    outcome = `{"error":"${kind}","message":${stringify(message)}}`;
  }

  function written(payload) {
    if (typeof payload === "string") return { text: payload };
    const json = stringify(payload);
    if (typeof json !== "string") throw new Refused("the payload is nothing that JSON can say");
    return { json };
  }

  function headersOf(given) {
    if (given === undefined || given === null) return undefined;
    if (typeof given !== "object" || isArray(given)) throw new Refused("headers must be an object of texts");
    const names = keys(given);
    if (names.length > MOST_HEADERS) throw new Refused(`there may be at most ${MOST_HEADERS} headers`);
    const pairs = [];
    for (let index = 0; index < names.length; index++) {
      const value = given[names[index]];
      if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
        throw new Refused("headers must be an object of texts");
      }
      pairs[index] = [names[index], RealString(value)];
    }
    return pairs;
  }

  // What a handler of an endpoint returned. What it leaves out stays as it was.
  function ofWebhook(result) {
    if (result === null || typeof result !== "object") throw new Refused("it must return the webhook, an object");
    if (result.cancel === true) return { cancel: true };
    const { method, url, payload } = result;
    const given = {};
    if (method !== undefined) {
      if (!METHODS.includes(method)) throw new Refused(`the method must be one of ${METHODS.join(", ")}`);
      given.method = method;
    }
    if (url !== undefined) {
      if (typeof url !== "string") throw new Refused("the url must be a text");
      given.url = url;
    }
    if (payload !== undefined) given.payload = written(payload);
    const headers = headersOf(result.headers);
    if (headers !== undefined) given.headers = headers;
    return given;
  }

  // What a handler of a destination returned for one event.
  function ofEvents(result, name) {
    if (result === null || typeof result !== "object") throw new Refused(`it must return an object with ${name}`);
    if (result.cancel === true) return { cancel: true };
    const found = result[name];
    if (!isArray(found)) throw new Refused(`it must return an object with a list of ${name}`);
    if (found.length === 0) return { cancel: true };
    if (found.length > 1) throw new Refused("it may return one message at most: events are sent one by one");
    if (name === "payloads") return { payload: written(found[0]) };
    if (found[0] === null || typeof found[0] !== "object") throw new Refused("a message must be an object");
    return { payload: written(found[0].payload) };
  }

  // The config and the format that a handler of a stream's sink returned.
  function configOf(result, answers) {
    if (result === null || typeof result !== "object") throw new Refused("it must return an object with data");
    const config = result.config ?? {};
    if (typeof config !== "object") throw new Refused("config must be an object");
    const format = config.format ?? FORMATS[answers][0];
    if (!FORMATS[answers].includes(format)) {
      throw new Refused(`config.format must be one of ${FORMATS[answers].join(", ")}`);
    }
    const { data } = result;
    if (result.cancel !== true) {
      if (data === undefined) throw new Refused("it must return an object with data");
      if (format === "raw" && typeof data !== "string") throw new Refused("raw data must be a text");
    }
    return { config, format, data };
  }

  // What is put into a bucket for a batch of events.
  function ofObject(result) {
    const { config, format, data } = configOf(result, "object");
    const { key } = config;
    if (key !== undefined && typeof key !== "string") throw new Refused("config.key must be a text");
    if (result.cancel === true) return { cancel: true };
    if (format === "raw") return { format, key, parts: [data] };
    if (!isArray(data)) throw new Refused("data must be a list");
    const parts = [];
    for (let index = 0; index < data.length; index++) {
      parts[index] = stringify(data[index]);
      if (typeof parts[index] !== "string") throw new Refused("data has something that JSON cannot say");
    }
    return parts.length === 0 ? { cancel: true } : { format, key, parts };
  }

  // What is posted for a batch of events.
  function ofRequest(result) {
    const { config, format, data } = configOf(result, "request");
    const { method, url, headers } = config;
    const given = ofWebhook({ method, url, headers, cancel: result.cancel });
    if (given.cancel) return given;
    const whole = data !== null && typeof data === "object" && !isArray(data);
    given.payload = format === "raw" || whole ? written(data) : written({ data });
    return given;
  }

  // The records of a data stream for a batch of events.
  function ofRecords(result) {
    if (result === null || typeof result !== "object") throw new Refused("it must return an object with messages");
    if (result.cancel === true) return { cancel: true };
    const { messages } = result;
    if (!isArray(messages)) throw new Refused("it must return an object with a list of messages");
    const parts = [];
    for (let index = 0; index < messages.length; index++) {
      const each = messages[index];
      if (each === null || typeof each !== "object") throw new Refused("a message must be an object");
      const { text, json } = written(each.payload);
      parts[index] = text ?? json;
    }
    return parts.length === 0 ? { cancel: true } : { format: "raw", parts };
  }

  const readers = { webhook: ofWebhook, object: ofObject, request: ofRequest, records: ofRecords };

  function finish(result, answers) {
    let given;
    if (answers === "value") given = result === undefined ? {} : { payload: written(result) };
    else given = readers[answers] ? readers[answers](result) : ofEvents(result, answers);
    const text = stringify(given);
    if (text.length > most) throw new Refused(`the result is larger than ${most} characters`);
    // This very text, as the code may have a second one made with a toJSON of its own.
    outcome = `{"result":${text}}`;
  }

  function settle(value, answers) {
    const done = (result) => {
      try {
        finish(result, answers);
      } catch (error) {
        fail(error);
      }
    };
    if (value instanceof RealPromise) apply(then, value, [done, fail]);
    else done(value);
  }

  const operations = {
    begin(text) {
      const given = parse(text);
      now = given.now;
      most = given.most;
      state = 0;
      for (let index = 0; index < given.seed.length; index++) {
        state = (imul(state, 31) + apply(charCodeAt, given.seed, [index])) | 0;
      }
    },
    javascript(text, answers) {
      try {
        const handler = evaluate("typeof handler === 'undefined' ? undefined : handler");
        if (typeof handler !== "function") throw new Refused("the code must define a function called handler");
        settle(handler(parse(text)), answers);
      } catch (error) {
        fail(error);
      }
    },
    jsonata(text, answers, code) {
      try {
        settle(jsonata(code).evaluate(text === "" ? undefined : parse(text)), answers);
      } catch (error) {
        fail(error);
      }
    },
    outcome() {
      return outcome;
    },
  };
  return (operation, ...given) => operations[operation](...given);
})()
