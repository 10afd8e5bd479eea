// Package wire knows the shapes in which LLM providers speak: error bodies and
// codes, rate-limit and retry headers, usage, and the way a stream ends. It
// covers the Anthropic and the OpenAI dialect, and the forms in which AWS and
// Google report errors about models they host.
//
// It states facts and holds no policy: [Read] says what the other side claims
// is wrong and how long it asks to wait, never whether to send again. A caller
// turns facts into a decision.
//
// Every parser here takes bytes from the network: all of them are bounded,
// none panics, and none copies request content into its result. All functions
// are safe for concurrent use; a [Stream] is not.
package wire
