package standin

import (
	_ "embed"
	"slices"
)

//go:embed plan.schema.json
var planSchema []byte

// PlanSchema returns the JSON Schema (draft 2020-12) of plans, for editors that
// complete and check while one types. It is made from the types that ParsePlan
// reads, their comments and the table of faults; what goes together with what,
// ParsePlan checks alone.
func PlanSchema() []byte { return slices.Clone(planSchema) }
