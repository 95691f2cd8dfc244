package api

import (
	"net/url"
	"strings"
)

// instance says whether a job is of the GitLab that a fleet belongs to. Each
// GitLab counts its projects, jobs and runners from 1: numbers of two of them
// must not be compared.
type instance int

// What may be known of it.
const (
	unknownGitLab instance = iota
	fleetsGitLab
	anotherGitLab
)

// instance compares an id_token's issuer with the fleet's GitLab, as it is
// reached. That may be by another name than the issuer's: if the only issuer
// there is has another one, it is taken for the fleet's.
func (s *Server) instance(issuer, fleetName string) instance {
	issuers := s.Pipelines.Issuers
	if len(issuers) == 1 {
		return fleetsGitLab
	}
	address := s.Fleets[fleetName].GitLabURL
	if sameAddress(issuer, address) {
		return fleetsGitLab
	}
	for _, i := range issuers {
		if sameAddress(i.URL, address) {
			return anotherGitLab
		}
	}
	return unknownGitLab
}

// sameAddress compares two base URLs by host, port and path.
func sameAddress(a, b string) bool {
	first, err := url.Parse(a)
	second, err2 := url.Parse(b)
	if err != nil || err2 != nil || first.Host == "" {
		return false
	}
	return bare(first) == bare(second)
}

// bare is host, port and path.
func bare(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Hostname()) + ":" + port + strings.TrimSuffix(u.Path, "/")
}
