package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Config is the whole file. Keys that are left out have the defaults that
// docs/reference/config.md lists. Defaults are filled in by [Load].
type Config struct {
	GitLab GitLab            `json:"gitlab,omitempty" doc:"The GitLab instance behind every fleet."`
	Fleets map[string]*Fleet `json:"fleets" minProperties:"1" doc:"The fleets by name."`
	Access []AccessRule      `json:"access,omitempty" doc:"Which CI jobs may do what, by the claims of their id_tokens. What no rule allows is refused."`
	Store  Store             `json:"store,omitempty" doc:"Where operations and their journal are kept."`
	Server Server            `json:"server,omitempty" doc:"How sluice serve is reached."`
	Log    Log               `json:"log,omitempty" doc:"What is logged, on standard error."`

	Webhooks Webhooks  `json:"webhooks,omitempty" doc:"What GitLab may send to /webhooks/gitlab of sluice serve."`
	Triggers []Trigger `json:"triggers,omitempty" doc:"Which webhook events recreate VMs."`

	// Path is the file that was read.
	Path string `json:"-"`
}

// GitLab is the instance behind every fleet.
type GitLab struct {
	URL   string  `json:"url,omitempty" default:"https://gitlab.com" format:"uri" doc:"Base URL of the instance, without /api/v4. Environment: SLUICE_GITLAB_URL."`
	Token *Secret `json:"token,omitempty" doc:"A token with scope read_api that sees every project the runner serves. Without it host evidence alone decides, and jobs are not named."`
	// WriteToken may be nil: then nothing is ever canceled, retried or removed with a user's right.
	WriteToken *Secret `json:"write_token,omitempty" doc:"A token with scope api whose user is a Maintainer (Developer does, with less) in every project the runner serves. It is used to cancel and retry jobs that were lost (drain.recover_orphans) and, under registration individual, to remove the entries of deleted VMs (its user must be allowed that; where no fleet recovers jobs, scope manage_runner is enough), for nothing else. Without it lost jobs are reported, and entries stay."`
}

// Fleet is one fleet: VMs behind one runner entry.
type Fleet struct {
	Runner   Runner   `json:"runner,omitempty" doc:"The runner entry in GitLab that the VMs share."`
	VMs      VMs      `json:"vms" doc:"The members: names, or prefix and count."`
	Provider Provider `json:"provider" doc:"What makes and deletes the VMs. Exactly one kind."`
	Image    string   `json:"image,omitempty" doc:"The image of new VMs, in the provider's words, unless a command says otherwise. Empty: the provider's own choice."`
	Host     Host     `json:"host" doc:"How to reach a VM and where its runner is."`
	Drain    Drain    `json:"drain,omitempty" doc:"How VMs are drained; a command may change it for one request."`
	Rollout  Rollout  `json:"rollout,omitempty" doc:"How many VMs at a time, and when a new one counts."`
}

// Runner is the runner entry that a fleet's VMs share.
type Runner struct {
	ID           int64   `json:"id,omitempty" minimum:"1" doc:"GitLab's number of the runner entry (#… on its page). Needed with gitlab.token, but not under registration individual."`
	Token        *Secret `json:"token,omitempty" doc:"The shared runner token (glrt-…). With it the manager of a deleted VM is removed and the token is proven alive. It is never reset, and the runner entry is never deleted."`
	Registration string  `json:"registration,omitempty" enum:"fleet,individual,none" default:"fleet" doc:"fleet: one runner entry for all VMs; the manager of a deleted VM is removed. individual: each VM has an entry of its own, which its create script registers and whose id stands in the VM's config.toml; the entry of a deleted VM is removed. none: one runner entry, and nothing is removed from GitLab."`
}

// VMs names a fleet's members.
type VMs struct {
	Names  []string `json:"names,omitempty" doc:"The names, one by one."`
	Prefix string   `json:"prefix,omitempty" doc:"With count: PREFIX1, PREFIX2, … or, with width, PREFIX01, …"`
	Count  int      `json:"count,omitempty" minimum:"1" maximum:"10000" doc:"How many VMs the prefix stands for."`
	Width  int      `json:"width,omitempty" minimum:"1" maximum:"6" doc:"Digits of the number, filled with zeros."`
}

// List yields the members' names.
func (v VMs) List() []string {
	if v.Prefix == "" {
		return slices.Clone(v.Names)
	}
	names := make([]string, v.Count)
	for i := range names {
		names[i] = fmt.Sprintf("%s%0*d", v.Prefix, max(v.Width, 1), i+1)
	}
	return names
}

// Provider is what makes and deletes VMs: exactly one kind is set.
type Provider struct {
	Exec *Exec `json:"exec,omitempty" doc:"Commands of your own."`
}

// Host says how to reach a VM.
type Host struct {
	User       string  `json:"user" minLength:"1" doc:"The login user."`
	Port       int     `json:"port,omitempty" default:"22" minimum:"1" maximum:"65535" doc:"The SSH port, where the provider's address has none."`
	RunnerUser string  `json:"runner_user,omitempty" doc:"Whose podman store holds the jobs' containers. Default: host.user."`
	Unit       string  `json:"unit,omitempty" default:"gitlab-runner.service" doc:"The runner's systemd unit."`
	Config     string  `json:"config,omitempty" default:"/etc/gitlab-runner/config.toml" doc:"The runner's config.toml on the VM; .runner_system_id lies beside it."`
	Key        *Secret `json:"key" doc:"The private SSH key."`
	HostKeys   string  `json:"host_keys,omitempty" enum:"provider,tofu,off" default:"tofu" doc:"provider: host keys as the provider reports them. tofu: trusted at first use of each incarnation, then kept. off: any key, each time; whoever has the address gets the orders, and doctor says so."`
}

// Drain is how VMs are drained.
type Drain struct {
	Cap           Duration `json:"cap,omitempty" default:"10m" doc:"How long jobs may go on after intake was stopped."`
	OnOverrun     string   `json:"on_overrun,omitempty" enum:"proceed,wait,abort" default:"proceed" doc:"When the cap passes with a job running. proceed: end the job cleanly, count it, go on. wait: until hard_cap. abort: restore intake, fail."`
	HardCap       Duration `json:"hard_cap,omitempty" default:"4h" doc:"Bounds on_overrun: wait, from the same moment as cap."`
	Unreachable   string   `json:"unreachable,omitempty" enum:"fail,proceed" default:"fail" doc:"When the host is out of reach for reach_deadline without a break."`
	ReachDeadline Duration `json:"reach_deadline,omitempty" default:"10m" doc:"See unreachable."`
	OnUnproven    string   `json:"on_unproven,omitempty" enum:"abort,proceed" default:"abort" doc:"When the runner process is gone at the cap, but GitLab cannot be asked."`

	RecoverOrphans *bool `json:"recover_orphans,omitempty" default:"true" doc:"Cancel a job that GitLab assigned in the instant of the stop and that never reached the VM, and run it again; end a cut job that GitLab goes on showing as running. Needs gitlab.write_token; without it, or with false, both are reported."`
	RetryCutJobs   bool  `json:"retry_cut_jobs,omitempty" doc:"Run a cut job again, too; if not given, it is not. It had begun: what it did is done twice."`

	recoverAsked bool // recover_orphans: true was written
}

// Policy yields the drain policy that the section describes.
func (d Drain) Policy() fleet.DrainPolicy {
	return fleet.DrainPolicy{
		Cap: d.Cap.D(), OnOverrun: fleet.Overrun(d.OnOverrun), HardCap: d.HardCap.D(),
		Unreachable: fleet.Unreachable(d.Unreachable), ReachDeadline: d.ReachDeadline.D(),
		OnUnproven: fleet.Unproven(d.OnUnproven),
	}
}

// Recovery yields what the section says about lost jobs.
func (d Drain) Recovery() fleet.RecoveryPolicy {
	return fleet.RecoveryPolicy{Orphans: d.RecoverOrphans == nil || *d.RecoverOrphans, CutJobs: d.RetryCutJobs, Asked: d.recoverAsked}
}

// Rollout limits how many VMs are worked on, and says when a new one counts.
type Rollout struct {
	MaxUnavailable int  `json:"max_unavailable,omitempty" default:"1" minimum:"1" doc:"How many VMs may be out of service at once, for whatever reason."`
	Gate           Gate `json:"gate,omitempty" doc:"What a new VM must show."`
}

// Gate is what a new VM must show before its operation has succeeded.
type Gate struct {
	Online Duration `json:"online,omitempty" default:"10m" doc:"It must serve within this time, else the operation fails and the VM stays for inspection."`
}

// Store is where operations are kept.
type Store struct {
	SQLite string `json:"sqlite,omitempty" doc:"The database file. Default: /var/lib/sluice/sluice.db for root, else sluice/sluice.db under $XDG_STATE_HOME. Environment: SLUICE_STORE_SQLITE."`
}

// Server is how sluice serve is reached.
type Server struct {
	Socket string   `json:"socket,omitempty" doc:"The Unix socket, mode 0600: who may open it may do everything. Default: beside the database, .sock for .db. Environment: SLUICE_SERVER_SOCKET."`
	Listen string   `json:"listen,omitempty" doc:"host:port for TCP; needs tokens or oidc. Empty: socket only. Put TLS in front of it. Environment: SLUICE_SERVER_LISTEN."`
	Tokens []Token  `json:"tokens,omitempty" doc:"The bearer tokens that TCP accepts. sluice token create makes one."`
	OIDC   []Issuer `json:"oidc,omitempty" doc:"The GitLab instances whose CI jobs come with id_tokens. access says what they may do."`
}

// Token is one bearer token, known by its hash only.
type Token struct {
	Name    string     `json:"name" minLength:"1" doc:"Whose it is; every change is recorded under this name."`
	SHA256  string     `json:"sha256" pattern:"^[0-9a-fA-F]{64}$" doc:"SHA-256 of the token, in hex."`
	Expires *time.Time `json:"expires,omitempty" doc:"From this moment it is refused (RFC 3339)."`
}

// Log is what is logged.
type Log struct {
	Level  string `json:"level,omitempty" enum:"debug,info,warn,error" default:"info" doc:"The least level. Environment: SLUICE_LOG_LEVEL."`
	Format string `json:"format,omitempty" enum:"text,json" default:"text" doc:"Environment: SLUICE_LOG_FORMAT."`
}

// Names lists the fleets in order.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Fleets)) }

// Specs yields what the engine and control must know of each fleet.
func (c *Config) Specs() map[string]fleet.Spec {
	specs := make(map[string]fleet.Spec, len(c.Fleets))
	for name, f := range c.Fleets {
		specs[name] = fleet.Spec{
			Name: name, VMs: f.VMs.List(), RunnerID: f.Runner.ID, GitLabURL: c.GitLab.URL,
			Registration: fleet.Registration(f.Runner.Registration),
			HasGitLab:    c.GitLab.Token != nil, HasRunnerToken: f.Runner.Token != nil,
			HasWriteToken: c.GitLab.Token != nil && c.GitLab.WriteToken != nil,
			Drain:         f.Drain.Policy(), Recovery: f.Drain.Recovery(), MaxUnavailable: f.Rollout.MaxUnavailable,
			GateOnline: f.Rollout.Gate.Online.D(), Image: f.Image,
			Host: fleet.HostSettings{
				User: f.Host.User, RunnerUser: f.Host.RunnerUser, Unit: f.Host.Unit, ConfigPath: f.Host.Config,
			},
		}
	}
	return specs
}
