package fleet

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// Ref names one VM of one fleet, written FLEET/VM.
type Ref struct {
	Fleet string `json:"fleet"`
	VM    string `json:"vm"`
}

// String renders FLEET/VM.
func (r Ref) String() string { return r.Fleet + "/" + r.VM }

// ParseRef reads FLEET/VM. Errors: CodeInvalid.
func ParseRef(text string) (Ref, error) {
	name, vm, ok := strings.Cut(text, "/")
	if !ok || name == "" || vm == "" || strings.Contains(vm, "/") {
		return Ref{}, Errorf(CodeInvalid, "%q does not name a VM", text).WithHint("write FLEET/VM, for example gcp-shared/runner-01")
	}
	return Ref{Fleet: name, VM: vm}, nil
}

// Kind is what an operation does to its VM.
type Kind string

// The kinds.
const (
	KindRecreate Kind = "recreate"
	KindDelete   Kind = "delete"
	KindCreate   Kind = "create"
	KindDrain    Kind = "drain"
	KindUndrain  Kind = "undrain"
)

// Kinds lists every kind, in the order of the documentation.
func Kinds() []Kind {
	return []Kind{KindRecreate, KindDelete, KindCreate, KindDrain, KindUndrain}
}

// Deletes says whether operations of this kind take the old VM away.
func (k Kind) Deletes() bool { return k == KindRecreate || k == KindDelete }

// Creates says whether operations of this kind make a new VM.
func (k Kind) Creates() bool { return k == KindRecreate || k == KindCreate }

// Drains says whether operations of this kind stop intake first.
func (k Kind) Drains() bool { return k != KindCreate && k != KindUndrain }

// Actor is who asked, from where, and why. It is recorded with every change.
type Actor struct {
	Name string `json:"name"`           // a token's name, "local:UID", "chore:…"
	From string `json:"from,omitempty"` // a remote address, "cli", "webhook"
	Why  string `json:"why,omitempty"`
}

// Words are all that is known of the actor, for the journal: one line, without
// what a terminal would obey, since whoever asks writes the reason.
func (a Actor) Words() string {
	text := a.Name
	if a.From != "" {
		text += " from " + a.From
	}
	if a.Why != "" {
		text += ": " + a.Why
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
}

// Job is one GitLab CI job as evidence names it.
type Job struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name,omitempty"`
	Project   string    `json:"project,omitempty"` // path with namespace
	ProjectID int64     `json:"project_id,omitempty"`
	Status    string    `json:"status,omitempty"` // GitLab's word
	URL       string    `json:"url,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"` // GitLab's clock
}

// String renders the job's link, or what else is known of it.
func (j Job) String() string {
	if j.URL != "" {
		return fmt.Sprintf("job %d (%s)", j.ID, j.URL)
	}
	return fmt.Sprintf("job %d", j.ID)
}

// JobPlace is where GitLab says that a job runs.
type JobPlace struct {
	RunnerID int64  // the runner entry; 0 = nobody took it
	SystemID string // of the manager; "" = none is linked, or GitLab does not say
	Ended    bool   // finished, whatever became of it
}

// Incarnation is one life of a VM: each recreation makes a new one with a
// new provider instance id. Address and host keys belong to it.
type Incarnation struct {
	Instance string `json:"instance,omitempty"` // the provider's id; never reused
	BootID   string `json:"boot_id,omitempty"`  // /proc/sys/kernel/random/boot_id
	SystemID string `json:"system_id,omitempty"`
	Manager  int64  `json:"manager,omitempty"` // GitLab's id of the runner manager; 0 = unknown
	// Entry is GitLab's id of the VM's own runner entry, read from [[runners]] on
	// the host, and EntryName its description (registration individual only).
	Entry     int64  `json:"entry,omitempty"`
	EntryName string `json:"entry_name,omitempty"`
}

// NewOperationID makes an operation id: "op-" and 12 characters of base 32.
// It is short enough to type and fits every cloud's label rules. random nil =
// crypto/rand. Errors: CodeInternal.
func NewOperationID(random io.Reader) (string, error) { return newID("op-", random) }

// newID is a prefix and 60 random bits.
func newID(prefix string, random io.Reader) (string, error) {
	raw := make([]byte, 8)
	if random == nil {
		random = rand.Reader
	}
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", Errorf(CodeInternal, "no randomness for an id: %w", err)
	}
	text := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(raw)
	return prefix + strings.ToLower(text[:12]), nil
}

// RequestToken yields the idempotency token of an operation's attempt at an
// act ("create", "delete"): UUIDv5, so that a repeat has the same token
// (RFC 9562; design.md section 5).
func RequestToken(operation, act string, attempt int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "sluice:%s:%s:%d", operation, act, attempt)).String()
}
