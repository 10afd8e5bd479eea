// Package endpoint is what is known of the APIs in the Anthropic format, as data: the providers that serve Claude and those
// that serve other models in the same shape. Each entry carries the date of what it was taken from.
//
// What is not known stands as unknown: nothing here is guessed, and nothing here asks a network. It holds no key.
package endpoint
