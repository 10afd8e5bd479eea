// The calls that people make with the TypeScript SDK of the Claude API.

import { File } from 'node:buffer';
import Anthropic, { toFile } from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
import { add, run } from './scenarios.mjs';

globalThis.File ??= File; // Node 18 has it there alone

const model = 'claude-sonnet-5-5';
const weather = {
  name: 'get_weather',
  description: 'The weather at a place',
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] }, days: { type: 'integer' } },
    required: ['city', 'unit', 'days'],
  },
};

const connect = (s) => new Anthropic({
  apiKey: s.api_key ?? 'good',
  baseURL: s.base_url,
  logLevel: 'off',
  ...(s.timeout_ms ? { timeout: s.timeout_ms } : {}),
  ...(s.max_retries !== undefined ? { maxRetries: s.max_retries } : {}),
});

const ask = (s) => ({
  model: s.model ?? model,
  max_tokens: s.max_tokens ?? 1024,
  messages: [{ role: 'user', content: s.prompt }],
  ...(s.system ? { system: s.system } : {}),
});

const usage = (u) => u && { input: u.input_tokens, output: u.output_tokens };

// told is what a complete message says. A reply without a body makes the SDK return undefined.
const told = (m) => m === undefined ? {} : ({
  text: m.content?.filter((b) => b.type === 'text').map((b) => b.text).join('') ?? '',
  thinking: m.content?.find((b) => b.type === 'thinking')?.thinking,
  signature: m.content?.find((b) => b.type === 'thinking')?.signature,
  blocks: m.content?.map((b) => b.type),
  stop_reason: m.stop_reason,
  category: m.stop_details?.category ?? undefined,
  model: m.model,
  usage: usage(m.usage),
  request_id: m._request_id,
});

const calls = {
  message: async (client, s, options) => told(await client.messages.create(ask(s), options)),

  // events reads the raw stream, as people do who do not use the helper.
  events: async (client, s, options, seen) => {
    const stream = await client.messages.create({ ...ask(s), stream: true }, options);
    Object.assign(seen, { text: '', events: [] });
    for await (const event of stream) {
      seen.events.push(event.type);
      if (event.delta?.type === 'text_delta') add(seen, event.delta.text);
      if (event.type === 'message_delta') Object.assign(seen, { stop_reason: event.delta.stop_reason, usage: usage(event.usage) });
    }
    return seen;
  },

  // final is the helper that puts the message together.
  final: async (client, s, options, seen) => {
    seen.text = '';
    const stream = client.messages.stream(ask(s), options);
    stream.on('text', (piece) => add(seen, piece));
    const message = await stream.finalMessage();
    return { ...told(message), streamed: seen.text, request_id: stream.request_id };
  },

  // tools plays two rounds by hand: the model calls, the result goes back, the model answers.
  tools: async (client, s, options) => {
    const params = { ...ask(s), tools: [weather] };
    const first = s.stream ? await client.messages.stream(params, options).finalMessage() : await client.messages.create(params, options);
    const call = first.content.find((b) => b.type === 'tool_use');
    if (!call) return { ...told(first), rounds: 1 };
    params.messages.push({ role: 'assistant', content: first.content });
    params.messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: '21 degrees' }] });
    const second = s.stream ? await client.messages.stream(params, options).finalMessage() : await client.messages.create(params, options);
    return { ...told(second), rounds: 2, first_stop: first.stop_reason, tool: call.name, input: call.input, tool_id: call.id };
  },

  // tool_runner leaves the rounds to the SDK.
  tool_runner: async (client, s, options) => {
    const inputs = [];
    const tool = betaTool({
      name: weather.name, description: weather.description, inputSchema: weather.input_schema,
      run: async (input) => { inputs.push(input); return '21 degrees'; },
    });
    const message = await client.beta.messages.toolRunner({ ...ask(s), tools: [tool], stream: s.stream ?? false, max_iterations: 3 }, options).runUntilDone();
    return { ...told(message), rounds: inputs.length + 1, input: inputs[0] };
  },

  thinking: async (client, s, options) => {
    const params = { ...ask(s), thinking: { type: 'adaptive', display: s.display ?? 'summarized' } };
    return told(s.stream ? await client.messages.stream(params, options).finalMessage() : await client.messages.create(params, options));
  },

  parse: async (client, s, options) => {
    const format = jsonSchemaOutputFormat({
      type: 'object',
      properties: { name: { type: 'string' }, age: { type: 'integer' }, tags: { type: 'array', items: { type: 'string' } } },
      required: ['name', 'age', 'tags'],
      additionalProperties: false,
    });
    const message = await client.messages.parse({ ...ask(s), output_config: { format } }, options);
    return { ...told(message), text: undefined, input: message.parsed_output };
  },

  count_tokens: async (client, s, options) => {
    const { model, messages } = ask(s);
    return { count: (await client.messages.countTokens({ model, messages }, options)).input_tokens };
  },

  models: async (client, s, options) => {
    const ids = [];
    for await (const m of client.models.list({ limit: 2 }, options)) ids.push(m.id);
    const one = await client.models.retrieve(ids[0], {}, options);
    return { ids, model: one.id, type: one.type };
  },

  // batch waits for the results as people should: an id that is not known yet is asked for again.
  batch: async (client, s) => {
    const requests = s.ids.map((custom_id) => ({ custom_id, params: ask(s) }));
    const batch = await client.messages.batches.create({ requests });
    let early = 0, polls = 0, now = batch;
    while (now.processing_status !== 'ended') {
      if (polls++ > 200) throw new Error('the batch does not end');
      await new Promise((resolve) => setTimeout(resolve, 10));
      try {
        now = await client.messages.batches.retrieve(batch.id);
      } catch (e) {
        if (!(e instanceof Anthropic.NotFoundError)) throw e;
        early++;
      }
    }
    const results = {}, texts = {};
    for await (const item of await client.messages.batches.results(batch.id)) {
      results[item.custom_id] = item.result.type;
      texts[item.custom_id] = item.result.type === 'succeeded' ? told(item.result.message).text : item.result.error?.error?.type;
    }
    const listed = [];
    for await (const b of client.messages.batches.list()) listed.push(b.id);
    const deleted = await client.messages.batches.delete(batch.id);
    return { type: deleted.type, early, results, texts, counts: now.request_counts, ids: listed, model: batch.id };
  },

  batch_cancel: async (client, s) => {
    const batch = await client.messages.batches.create({ requests: s.ids.map((custom_id) => ({ custom_id, params: ask(s) })) });
    const canceled = await client.messages.batches.cancel(batch.id);
    return { model: batch.id, type: canceled.processing_status };
  },

  batch_create: async (client, s) => {
    const batch = await client.messages.batches.create({ requests: s.ids.map((custom_id) => ({ custom_id, params: ask(s) })) });
    return { model: batch.id, type: batch.processing_status };
  },

  files: async (client, s) => {
    const upload = await client.files.upload({ file: await toFile(Buffer.from(s.prompt), 'notes.txt', { type: 'text/plain' }) });
    const listed = [];
    for await (const f of client.files.list()) listed.push(f.id);
    const one = await client.files.retrieveMetadata(upload.id);
    const deleted = await client.files.delete(upload.id);
    const left = [];
    for await (const f of client.files.list()) left.push(f.id);
    return { ids: listed, left, model: one.id, type: deleted.type, text: one.filename, count: one.size_bytes, code: one.mime_type };
  },
};

await run({ connect, calls });
