// Package saved keeps the last good answers of an LLM API and gives them back when nothing live works.
//
// A [Store] knows a question by the SHA-256 of what determines its answer: the path, the version, the betas and the body
// without what only tells how the answer is delivered, paid or accounted for. It holds answers and no questions. It keeps
// an answer only if that is complete and good, whole as JSON or as an event stream, and gives it back in the form that is
// asked for, whatever form it came in. A fresher answer takes the place of the older one.
//
//	store, err := saved.Open("answers.db", saved.Options{})
//	defer store.Close()
//	store.Keep(ctx, question, answer)         // returns at once; a goroutine checks and writes
//	answer, found := store.Load(ctx, question) // when the API is down
//
// It knows messages of the Claude API, and chat completions and responses of the OpenAI dialect.
package saved
