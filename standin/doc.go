// Package standin is a stand-in for an LLM API that fails on purpose, for
// tests and game days. A Plan says what goes wrong, a Server is the
// http.Handler that plays it, and its journal says what really arrived:
//
//	server, url := standin.Serve(t, standin.Failing(2, 429, "1")) // two 429 with retry-after 1, then answers
//	client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("any"))
//	…
//	standin.Expect(t, server.Journal(), standin.Requests(3), standin.WaitsHonoured(0))
//
// Serve is for tests. Server.Start serves until it is stopped, New gives the bare
// handler, and Rehearse plays a plan without a network and without a clock. The
// command "holdfast standin" does all of it for clients in any language.
//
// It speaks the Messages API with token counts, batches, models and files, and
// of the OpenAI API chat completions and responses, as JSON and as event streams,
// and refuses what the real APIs refuse, in their words. Replies are held against
// recorded ones. Answers never repeat the prompt; one longer than max_tokens is
// cut off there, with four characters to a token.
//
// # Plans
//
// A Plan is a Go value or a document: ParsePlan and LoadPlan read YAML and JSON
// and report every mistake with its line. Rules and jobs give steps to the
// requests that match, a timeline brings incidents, limits are real buckets
// with the headers that go with them. Every draw is keyed by seed, job and attempt, where the
// job is the custom id, the key in Jobs, or the body: so any number of clients
// working in parallel sees the same faults per job in every run.
//
// Times come from package time, so a Server runs unchanged in a testing/synctest
// bubble. It shares no policy with the library it judges.
//
// # Faults
//
// Every fault is one noun, a Kind. Faults returns the table of them with a
// paragraph on each; "holdfast standin faults" prints it.
//
// # What the client did
//
// Server.Journal holds every request: when it came and went, its attempt and
// digest, the fault, the tokens billed, who closed first. Expect holds it against
// ready checks, Server.Ledger shows work that was paid twice, and Server.Report
// judges the client. The same is told under /_standin/.
//
// # Recordings
//
// Record passes requests through to a real API and keeps them on a Tape; a plan
// with a Tape plays it, and its faults lie over it.
package standin
