package simgitlab

import (
	"encoding/json"
	"net/http"
	"time"
)

// jobsRequest is POST /jobs/request: 201 with a job, 204 without, 403 with a
// dead token. Like workhorse it holds the call while the queue is unchanged
// since the client's last_update, without a heartbeat; unlike workhorse it
// hands out the job in the same call when the queue changes.
func (s *Server) jobsRequest(w http.ResponseWriter, r *http.Request) {
	c, ok := readRunnerCall(r)
	if !ok {
		message(w, http.StatusBadRequest, "400 Bad request")
		return
	}
	deadline := time.NewTimer(s.cfg.LongPoll)
	defer deadline.Stop()
	held := s.unchanged(c.LastUpdate)
	for {
		p, last, wake, code := s.take(c, r, held)
		switch {
		case code == http.StatusCreated:
			s.deliver(w, r, p)
			return
		case code == http.StatusForbidden:
			forbiddenToken(w)
			return
		case !held:
			noJob(w, last)
			return
		}
		select {
		case <-wake:
		case <-deadline.C:
			noJob(w, last)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// unchanged says whether the client has seen this state of the queue.
func (s *Server) unchanged(lastUpdate string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.LongPoll > 0 && lastUpdate == s.lastUpdate()
}

func noJob(w http.ResponseWriter, last string) {
	w.Header().Set("X-GitLab-Last-Update", last)
	w.WriteHeader(http.StatusNoContent)
}

// take assigns a job if there is one. held: the call is a held one, so that a
// look that finds nothing is no heartbeat.
func (s *Server) take(c runnerCall, r *http.Request, held bool) (p *JobPayload, last string, wake <-chan struct{}, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ru := s.runnerByToken(c.Token)
	if ru == nil {
		return nil, "", nil, http.StatusForbidden
	}
	if c.SystemID == "" {
		c.SystemID = legacySystemID
	}
	j := s.nextJob(ru, c.SystemID)
	if j == nil && held {
		return nil, s.lastUpdate(), s.queueWake, http.StatusNoContent
	}
	m := s.heartbeat(ru, c, r)
	if j == nil {
		return nil, s.lastUpdate(), s.queueWake, http.StatusNoContent
	}
	s.assign(j, ru, m)
	payload := s.payload(s.baseURL(r), j)
	return &payload, "", nil, http.StatusCreated
}

// nextJob is the oldest pending, unassigned job this manager may take.
func (s *Server) nextJob(ru *runner, systemID string) *job {
	if ru.paused {
		return nil
	}
	var next *job
	for _, j := range s.st.jobs {
		if j.status != StatusPending || j.runnerID != 0 {
			continue
		}
		if j.spec.RunnerID != 0 && j.spec.RunnerID != ru.spec.ID {
			continue
		}
		if j.spec.SystemID != "" && j.spec.SystemID != systemID {
			continue
		}
		if next == nil || j.id < next.id {
			next = j
		}
	}
	return next
}

// assign moves the job to this manager; the switches decide how much of that
// a reader sees.
func (s *Server) assign(j *job, ru *runner, m *manager) {
	s.beforeChange()
	now := s.now()
	j.runnerID, j.systemID, j.assignedAt, j.touchedAt = ru.spec.ID, m.systemID, now, now
	if !s.switches.TwoPhase {
		j.status, j.startedAt = StatusRunning, now
		if !s.switches.NoManagerLink {
			j.managerID = m.id
		}
	}
	s.queueSerial++ // a later poll must look again
}

// deliver writes the job, late if AssignDelay says so. A client that went away
// meanwhile leaves the job assigned: an orphan.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, p *JobPayload) {
	if d := s.Switches().AssignDelay; d > 0 && !wait(r.Context(), d) {
		s.undelivered(p.ID)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	err := json.NewEncoder(w).Encode(p)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err != nil || r.Context().Err() != nil {
		s.undelivered(p.ID)
	}
}

func (s *Server) undelivered(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.st.jobs[id].undelivered = true
}
