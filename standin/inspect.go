package standin

import (
	"encoding/json"
	"net/http"
)

// inspectPrefix is where the stand-in can be asked about itself. Requests there
// are not recorded.
const inspectPrefix = "/_standin/"

// inspect answers GET /_standin/journal with what the Server's methods return
// and POST /_standin/reset with 204.
func (s *Server) inspect(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path[len(inspectPrefix):] {
	case "GET journal":
		input, output := s.Billed()
		w.Header().Set("content-type", "application/json")
		_ = json.NewEncoder(w).Encode(struct { // fails only when nobody reads any more
			Open      int     `json:"open"`
			Input     int     `json:"input"`
			Output    int     `json:"output"`
			Exchanges Journal `json:"exchanges"`
		}{s.Open(), input, output, s.Journal()})
	case "POST reset":
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "standin: there are GET "+inspectPrefix+"journal and POST "+inspectPrefix+"reset", http.StatusNotFound)
	}
}
