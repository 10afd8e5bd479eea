package config

import (
	_ "embed"
	"slices"
)

//go:embed holdfast.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of the file, for editors that complete and check while one types. It is made
// from the structs that read the file and from their comments; what goes together with what, Parse checks alone.
func Schema() []byte { return slices.Clone(schema) }
