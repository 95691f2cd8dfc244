package doctor

import "gitlab.com/sluice-runners/sluice/internal/fleet"

// Code names one kind of finding. It is what scripts act on, so it never
// changes; what a finding says may.
type Code string

// The codes that are not faults of a host for which operations are refused
// (those are fleet.Fault).
const (
	CodeNoToken            Code = "no-token"
	CodeNoGitLabToken      Code = "no-gitlab-token"
	CodeTokenScope         Code = "gitlab-token-scope"          //nolint:gosec // a name, no credential
	CodeTokenEndsSoon      Code = "gitlab-token-ends-soon"      //nolint:gosec // a name, no credential
	CodeTokenBlind         Code = "gitlab-token-below-reporter" //nolint:gosec // a name, no credential
	CodeTokenSightUnknown  Code = "gitlab-token-sight-unknown"  //nolint:gosec // a name, no credential
	CodeWriteTokenScope    Code = "write-token-scope"           //nolint:gosec // a name, no credential
	CodeWriteTokenRefused  Code = "write-token-refused"         //nolint:gosec // a name, no credential
	CodeWriteTokenEndsSoon Code = "write-token-ends-soon"       //nolint:gosec // a name, no credential
	CodeWriteTokenRole     Code = "write-token-below-developer" //nolint:gosec // a name, no credential
	CodeRecoversNothing    Code = "recovers-nothing"
	CodeRunnerTokenExpires      = Code(fleet.FaultTokenExpires)
	CodeRunnerTokenUnknown Code = "runner-token-unproven"
	CodeRunnerTokenDead    Code = "runner-token-dead"
	CodeRunnerTokenRefused Code = "runner-token-refused"
	CodeRunnerTokenForeign Code = "runner-token-foreign"

	CodeGitLabUnread  Code = "gitlab-unreadable"
	CodeGitLabTooOld  Code = "gitlab-too-old"
	CodeRunnerPaused  Code = "runner-paused"
	CodeNoManagerSeen Code = "no-manager-seen"

	CodeProviderUnread Code = "provider-unreadable"
	CodeVMMissing      Code = "vm-missing"
	CodeVMAmbiguous    Code = "vm-ambiguous"
	CodeVMOff          Code = "vm-off"
	CodeVMNoAddress    Code = "vm-without-address"
	CodeVMExtra        Code = "vm-not-configured"

	CodeCreateForbidden Code = "create-forbidden"
	CodeImageMissing    Code = "image-missing"
	CodeCreateInvalid   Code = "create-invalid"
	CodeNoRoom          Code = "no-room"
	CodeCreateUnknown   Code = "create-unknown"

	CodeHostKeysOff     Code = "host-keys-off"
	CodeHostKeyWrong    Code = "host-key-wrong"
	CodeLoginRefused    Code = "login-refused"
	CodeHostUnreachable Code = "host-unreachable"
	CodeHostUnusable    Code = "host-unusable"

	CodeKillMode       Code = "kill-mode-hits-jobs"
	CodeOverrideLate   Code = "override-beats-drain"
	CodeEntriesMixed   Code = "runner-entries-mixed"
	CodePodmanAsRoot   Code = "podman-as-root"
	CodeClockOff       Code = "clock-off"
	CodeSystemdOld     Code = "systemd-too-old"
	CodeSystemIDShared Code = "system-id-shared"
	CodeSystemIDBaked  Code = "system-id-baked"

	CodeVMWithoutManager Code = "vm-without-manager"
	CodeManagerWithoutVM Code = "manager-without-vm"
	CodeManagerAmbiguous Code = "manager-ambiguous"
	CodeManagerOffline   Code = "manager-offline"

	CodeWebhooksUnknown   Code = "webhooks-unknown"
	CodeWebhookMissing    Code = "webhook-missing"
	CodeWebhookEvents     Code = "webhook-events-missing"
	CodeWebhookDisabled   Code = "webhook-disabled"
	CodeWebhookRefused    Code = "webhook-refused"
	CodeWebhookUnverified Code = "webhook-tls-unverified"
)

// Kind is what is always so of findings with one code.
type Kind struct {
	Code     Code
	Check    string
	Severity Severity
	Is       string // what was found, in general
	Would    string // what it causes
	Mend     string // what to do, where the finding itself says nothing nearer
}

// Shared words of the catalogue.
const (
	blind     = "GitLab's word stays unknown, and drains end undecided at the cap"
	refused   = "operations on it are refused before anything is stopped"
	unborn    = "a recreate or create is refused before anything is stopped"
	lost      = "events are lost; triggers do not fire"
	noManager = "managers of deleted VMs are not removed"
)

// Catalog lists every kind of finding.
func Catalog() []Kind {
	var all []Kind
	for _, part := range [][]Kind{
		tokenKinds, writeTokenKinds, gitlabKinds, providerKinds, reachKinds, hostKinds, identityKinds, entryKinds, webhookKinds,
	} {
		all = append(all, part...)
	}
	return all
}

// kindOf yields the kind of a code; a code without one is a mistake of ours,
// which a test finds.
func kindOf(code Code) Kind {
	for _, k := range Catalog() {
		if k.Code == code {
			return k
		}
	}
	return Kind{Code: code, Severity: SeverityError, Would: refused}
}

// finding makes one of the code, for a VM or, with "", for the fleet.
func finding(code Code, vm, what string) Finding {
	k := kindOf(code)
	return Finding{Code: code, Severity: k.Severity, VM: vm, Check: k.Check, What: what, Would: k.Would, Mend: k.Mend}
}
