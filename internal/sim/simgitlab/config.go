package simgitlab

import "time"

// Config is how a Server starts out. The zero value of every field has a
// usable default, except Now, which is required.
type Config struct {
	// Now is the instance's clock; every timestamp and the Date header come
	// from it. Holds (long poll, slow faults) use real timers.
	Now func() time.Time
	// BasePath is the path of an instance that lives below its host's root,
	// like "/gitlab". Empty: the root.
	BasePath string
	// LongPoll is how long POST /jobs/request may be held while there is no
	// job (workhorse's default is 50 s). Zero: it answers at once.
	LongPoll time.Duration
	// Version is what GET /metadata reports. Empty: a 19.x version.
	Version string
	// Runners are the runner entries. Empty: one with DefaultRunnerID and
	// DefaultRunnerToken.
	Runners []RunnerSpec
	// Users are the user tokens. Empty: one group owner with
	// DefaultUserToken (read_api) and one with DefaultWriteToken (api).
	Users []User
}

// The entries a Server has when Config names none.
const (
	DefaultRunnerID    = 4711
	DefaultRunnerToken = "glrt-sim-shared-token" //nolint:gosec // opens nothing but a fake
	DefaultUserToken   = "glpat-sim-read"        //nolint:gosec // as above
	DefaultWriteToken  = "glpat-sim-write"       //nolint:gosec // as above
)

// RunnerSpec is one runner entry: one authentication token shared by all its
// managers.
type RunnerSpec struct {
	ID          int64
	Token       string
	Description string
	// Type is instance_type, group_type or project_type. Empty: group_type.
	Type string
	// Projects are the paths of those that a project runner is enabled in.
	Projects []string
	// Individual says that it is one VM's own: removing it after its VM hurts nobody.
	Individual bool
	// TokenExpiresAt is zero for a token without expiry.
	TokenExpiresAt time.Time
}

// Role says what a user may do with the runner entries (facts/gitlab.md 1.3).
type Role string

// The roles that make a difference to the runners API.
const (
	// RoleAdmin sees everything.
	RoleAdmin Role = "admin"
	// RoleOwner may read the runner, its managers and its jobs, the latter
	// restricted to the projects the user can see.
	RoleOwner Role = "owner"
	// RoleMaintainer may read the runner and its managers; its jobs are 403.
	RoleMaintainer Role = "maintainer"
	// RoleDeveloper is as RoleOwner to all reads, and may cancel and retry jobs,
	// not by force.
	RoleDeveloper Role = "developer"
	// RoleNone gets 403 for all of them.
	RoleNone Role = "none"
)

// User is the owner of one access token.
type User struct {
	Name   string
	Token  string
	Scopes []string
	Role   Role
	// Projects are the paths the user can see jobs of, being a Reporter there or
	// more. Nil: all.
	Projects []string
	// Guest are those in which the user is a member with a lesser role.
	Guest []string
	// Reports are those in which the user is a Reporter and no more: jobs can be
	// seen, and neither canceled nor retried.
	Reports []string
	// ExpiresAt is the token's expiry date; zero for none.
	ExpiresAt time.Time
}

func (c Config) withDefaults() Config {
	if c.Version == "" {
		c.Version = "19.4.0-ee"
	}
	if len(c.Runners) == 0 {
		c.Runners = []RunnerSpec{{
			ID: DefaultRunnerID, Token: DefaultRunnerToken, Description: "fleet",
		}}
	}
	if len(c.Users) == 0 {
		c.Users = []User{
			{Name: "reader", Token: DefaultUserToken, Scopes: []string{"read_api"}, Role: RoleOwner},
			{Name: "writer", Token: DefaultWriteToken, Scopes: []string{"api"}, Role: RoleOwner},
		}
	}
	return c
}
