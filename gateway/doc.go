// Package gateway keeps the calls of any client in any language working: a reverse proxy whose every request is one call of
// package holdfast. A client uses it by changing its base URL, and nothing else.
//
//	g, err := gateway.New(gateway.Settings{Targets: []gateway.Target{{Name: "anthropic", URL: "https://api.anthropic.com"}}})
//	http.ListenAndServe("127.0.0.1:4100", g)
//
// Method, path, query, body and end-to-end headers arrive as sent, answers and final errors come back byte for byte. What
// it adds is in headers that begin with "holdfast-". Until the first content of a stream nothing has been handed over, so
// that a failure before it is repeated; what was handed over is never repeated, and a stream that is cut ends with an error
// event in the shape of its dialect, never quietly.
package gateway
