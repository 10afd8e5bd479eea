// Package standin is a stand-in for an LLM API that fails on purpose, for
// tests and game days. A Plan says what goes wrong, a Server is the
// http.Handler that plays it, and its journal says what really arrived:
//
//	s := standin.New(standin.Failing(2, 429, "1")) // two 429 with retry-after 1, then answers
//	url, stop, err := s.Start("")
//	…
//	gaps := s.Journal().Gaps() // time between arrivals
//
// It speaks /v1/messages and /v1/chat/completions, JSON and event streams, and
// refuses what the real APIs refuse. The same plan and the same order of
// requests give the same replies, byte for byte: nothing is drawn at random.
// Answers never repeat the prompt; one longer than max_tokens is cut off there,
// with four characters to a token. Times come from package time, so a Server
// runs unchanged in a testing/synctest bubble. It shares no policy with the
// library it judges.
//
// # Faults
//
// Every fault is one noun, a Kind:
//
// ok is no fault: a complete answer, useful between faults. It takes a Delay
// and, for streams, a Gap between content events.
//
// http is a reply with Status and the provider's error body: Type (the status
// decides it when empty), Code, Message, a RetryAfter sent as it is written,
// any Header. Body and ContentType replace the error body.
//
// refusal is a 200 with stop_reason refusal, its Category and Explanation, and
// no content; in the OpenAI dialect finish_reason content_filter. Nothing is billed.
//
// truncation is a 200 whose answer ends half-way with stop_reason max_tokens,
// in the OpenAI dialect finish_reason length.
//
// timeout takes the request and sends nothing until the client leaves. The
// work is billed: a provider does not notice that nobody waits.
//
// reset takes the whole request and breaks the connection before any byte of a
// reply. The work is billed: the reply was lost, not the request.
//
// cut ends a stream before its end: At a stage, After content events, in the
// way that How says: a clean end, a missing last chunk, a reset, or a stall.
// Torn sends half of the next event first. A JSON answer is cut in its middle.
//
// error is an error event inside a 200 stream At a stage, After content
// events, with the Type, Code and Message of the Status that it would have had.
// A JSON answer is a 200 with the error as its body.
//
// empty is a 200 without one byte of body.
//
// html is a 200 with a web page, as from a proxy or a captive portal.
package standin
