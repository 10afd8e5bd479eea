// The calls that people make with the Node SDK of OpenAI.

import OpenAI from 'openai';
import { add, run } from './scenarios.mjs';

const model = 'gpt-6';
const schema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};

const connect = (s) => new OpenAI({
  apiKey: s.api_key ?? 'good',
  baseURL: s.base_url + '/v1',
  logLevel: 'off',
  ...(s.timeout_ms ? { timeout: s.timeout_ms } : {}),
  ...(s.max_retries !== undefined ? { maxRetries: s.max_retries } : {}),
});

const chat = (s) => ({ model, messages: [{ role: 'user', content: s.prompt }], ...(s.max_tokens ? { max_completion_tokens: s.max_tokens } : {}) });

const completion = (c) => c === undefined ? {} : ({
  text: c.choices?.[0]?.message.content ?? '',
  stop_reason: c.choices?.[0]?.finish_reason,
  model: c.model,
  usage: c.usage && { input: c.usage.prompt_tokens, output: c.usage.completion_tokens },
  request_id: c._request_id,
});

const response = (r) => ({
  text: r.output_text ?? '',
  stop_reason: r.incomplete_details?.reason ?? r.status,
  model: r.model,
  usage: r.usage && { input: r.usage.input_tokens, output: r.usage.output_tokens },
  request_id: r._request_id,
});

const calls = {
  chat: async (client, s, options) => completion(await client.chat.completions.create(chat(s), options)),

  chat_events: async (client, s, options, seen) => {
    const params = { ...chat(s), stream: true, ...(s.want_usage ? { stream_options: { include_usage: true } } : {}) };
    const stream = await client.chat.completions.create(params, options);
    Object.assign(seen, { text: '' });
    for await (const chunk of stream) {
      add(seen, chunk.choices[0]?.delta.content ?? '');
      if (chunk.choices[0]?.finish_reason) seen.stop_reason = chunk.choices[0].finish_reason;
      if (chunk.usage) seen.usage = { input: chunk.usage.prompt_tokens, output: chunk.usage.completion_tokens };
    }
    return seen;
  },

  // chat_final is the helper that puts the completion together.
  chat_final: async (client, s, options) => completion(await client.chat.completions.stream({ ...chat(s), stream_options: { include_usage: true } }, options).finalChatCompletion()),

  chat_tools: async (client, s, options) => {
    const params = { ...chat(s), tools: [{ type: 'function', function: { name: 'get_weather', parameters: schema } }] };
    const complete = async () => (s.stream ? client.chat.completions.stream(params, options).finalChatCompletion() : client.chat.completions.create(params, options));
    const first = await complete();
    const call = first.choices[0].message.tool_calls?.[0];
    if (!call) return { ...completion(first), rounds: 1 };
    params.messages.push(first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: '21 degrees' });
    return { ...completion(await complete()), rounds: 2, first_stop: first.choices[0].finish_reason, tool: call.function.name, input: JSON.parse(call.function.arguments) };
  },

  // chat_runner leaves the rounds to the SDK.
  chat_runner: async (client, s, options) => {
    const inputs = [];
    const runner = client.chat.completions.runTools({
      ...chat(s),
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: schema, parse: JSON.parse, function: (input) => { inputs.push(input); return '21 degrees'; } } }],
    }, options);
    return { text: await runner.finalContent(), rounds: inputs.length + 1, input: inputs[0] };
  },

  response: async (client, s, options) => response(await client.responses.create({ model, input: s.prompt, ...(s.max_tokens ? { max_output_tokens: s.max_tokens } : {}) }, options)),

  response_events: async (client, s, options, seen) => {
    const stream = await client.responses.create({ model, input: s.prompt, stream: true }, options);
    Object.assign(seen, { text: '', events: [] });
    for await (const event of stream) {
      seen.events.push(event.type);
      if (event.type === 'response.output_text.delta') add(seen, event.delta);
      if (event.response) seen.stop_reason = event.response.status;
      if (event.response?.usage) seen.usage = response(event.response).usage;
      if (event.response?.error) seen.code = event.response.error.code;
    }
    return seen;
  },

  // response_final is the helper that puts the response together.
  response_final: async (client, s, options) => response(await client.responses.stream({ model, input: s.prompt }, options).finalResponse()),

  response_tools: async (client, s, options) => {
    const params = { model, input: [{ role: 'user', content: s.prompt }], tools: [{ type: 'function', name: 'get_weather', parameters: schema, strict: true }] };
    const complete = async () => (s.stream ? client.responses.stream(params, options).finalResponse() : client.responses.create(params, options));
    const first = await complete();
    const call = first.output.find((item) => item.type === 'function_call');
    if (!call) return { ...response(first), rounds: 1 };
    params.input.push(...first.output, { type: 'function_call_output', call_id: call.call_id, output: '21 degrees' });
    return { ...response(await complete()), rounds: 2, tool: call.name, input: JSON.parse(call.arguments) };
  },

  models: async (client, s, options) => {
    const ids = [];
    for await (const m of client.models.list(options)) ids.push(m.id);
    return { ids };
  },
};

await run({ connect, calls });
