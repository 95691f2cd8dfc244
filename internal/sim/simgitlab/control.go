package simgitlab

import (
	"net/http"
	"strconv"
)

// controlRoutes is the control API for tests in another process. Durations
// are nanoseconds, as Go encodes them.
//
//	POST   /sim/jobs      JobSpec → {id, web_url}
//	GET    /sim/jobs/{id} → JobRecord
//	GET    /sim/ledger    → Ledger
//	POST   /sim/faults    Fault → {id};  DELETE /sim/faults ends all
//	GET    /sim/switches  → Switches;    PUT /sim/switches replaces them all
//	GET    /sim/requests?after=SEQ → []Request
//	GET    /sim/counts    → {route: calls}
//	POST   /sim/gone      {system_id}: the VM was destroyed
func (s *Server) controlRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /sim/jobs", func(w http.ResponseWriter, r *http.Request) {
		decoded(w, r, func(spec JobSpec) any {
			id := s.Enqueue(spec)
			url := s.webURL(s.baseURL(r), &job{id: id, spec: spec.withDefaults()})
			return map[string]any{"id": id, "web_url": url}
		})
	})
	mux.HandleFunc("GET /sim/jobs/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		rec, ok := s.Job(id)
		if !ok {
			notFound(w, "Job")
			return
		}
		writeJSON(w, http.StatusOK, rec)
	})
	mux.HandleFunc("GET /sim/ledger", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Ledger())
	})
	mux.HandleFunc("POST /sim/faults", func(w http.ResponseWriter, r *http.Request) {
		decoded(w, r, func(f Fault) any { return map[string]int{"id": s.Inject(f)} })
	})
	mux.HandleFunc("DELETE /sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /sim/switches", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Switches())
	})
	mux.HandleFunc("PUT /sim/switches", func(w http.ResponseWriter, r *http.Request) {
		decoded(w, r, func(sw Switches) any {
			s.Switch(func(cur *Switches) { *cur = sw })
			return sw
		})
	})
	mux.HandleFunc("GET /sim/requests", func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
		writeJSON(w, http.StatusOK, s.Requests(after))
	})
	mux.HandleFunc("GET /sim/counts", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Counts())
	})
	mux.HandleFunc("POST /sim/gone", func(w http.ResponseWriter, r *http.Request) {
		decoded(w, r, func(vm goneVM) any {
			s.VMGone(vm.SystemID)
			return vm
		})
	})
}

// goneVM is the body of POST /sim/gone.
type goneVM struct {
	SystemID string `json:"system_id"`
}

// decoded reads a T and answers what act makes of it; 400 if it is no T.
func decoded[T any](w http.ResponseWriter, r *http.Request, act func(T) any) {
	var v T
	if err := readJSON(r, &v); err != nil {
		message(w, http.StatusBadRequest, "400 Bad request: "+err.Error())
		return
	}
	writeJSON(w, http.StatusOK, act(v))
}
