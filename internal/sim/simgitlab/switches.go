package simgitlab

import "time"

// Switches change how the instance behaves while they are set; each is one
// trap of the real GitLab (facts/gitlab.md section 11).
type Switches struct {
	// OmitJobExecutionStatus leaves the field out, as older servers do.
	OmitJobExecutionStatus bool `json:"omit_job_execution_status,omitempty"`
	// NoManagerLink freezes new jobs as running without a manager: invisible
	// to the system_id filter and to per-manager status.
	NoManagerLink bool `json:"no_manager_link,omitempty"`
	// TwoPhase keeps an assigned job pending until the runner's first update.
	TwoPhase bool `json:"two_phase,omitempty"`
	// GhostBusy are system_ids reported active whatever their jobs say.
	GhostBusy []string `json:"ghost_busy,omitempty"`
	// StaleReads is how many user-facing reads after a job's change still see
	// the state before it.
	StaleReads int `json:"stale_reads,omitempty"`
	// MaxPerPage caps per_page (real: 100), to force pages with few jobs.
	MaxPerPage int `json:"max_per_page,omitempty"`
	// CutPages drops the link to the next page though there is one.
	CutPages bool `json:"cut_pages,omitempty"`
	// AssignDelay holds the answer of POST /jobs/request after the job was
	// assigned: who cuts the request meanwhile leaves an orphan.
	AssignDelay time.Duration `json:"assign_delay,omitempty"`
	// NoRouter answers 501 to router discovery, as most instances do.
	NoRouter bool `json:"no_router,omitempty"`
}

// Switch changes the switches under the lock.
func (s *Server) Switch(change func(*Switches)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.switches)
	if s.switches.StaleReads == 0 {
		s.stale = nil
	}
}

// Switches returns the switches as they are now.
func (s *Server) Switches() Switches {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.switches
}
