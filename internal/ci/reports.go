package ci

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The files of a job's reports, in the directory that it is given.
const (
	JUnitFile       = "junit.xml"
	DotenvFile      = "sluice.env"
	AnnotationsFile = "annotations.json"
)

// What GitLab takes of a dotenv report unless its admin says otherwise
// (docs.gitlab.com/administration/instance_limits: 20 variables, 5 KiB). More
// makes the upload fail, and with it the job.
const (
	maxVariables = 20
	maxDotenv    = 5 << 10
)

// maxAnnotations bounds the links on the job's page: they are for people.
const maxAnnotations = 50

// write puts all three reports into a directory, each whole or not at all.
// Errors: CodeUnavailable if it cannot.
func (r Report) write(dir string) error {
	annotations, err := r.annotations()
	if err != nil {
		return err
	}
	junit, err := r.junit()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the runner's helper reads it as another user
		return unwritable(dir, err)
	}
	for name, body := range map[string][]byte{JUnitFile: junit, DotenvFile: r.dotenv(), AnnotationsFile: annotations} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", body, 0o644); err != nil { //nolint:gosec // as above
			return unwritable(path, err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return unwritable(path, err)
		}
	}
	return nil
}

func unwritable(path string, err error) error {
	return fleet.Errorf(fleet.CodeUnavailable, "the report %s cannot be written: %w", path, err).
		WithHint("--reports must be a directory that this job may write, below the project's")
}

// annotations are links for the job's page (docs.gitlab.com/ci/yaml/artifacts_reports,
// "artifacts:reports:annotations").
func (r Report) annotations() ([]byte, error) {
	type external struct {
		Label string `json:"label"`
		URL   string `json:"url"`
	}
	type entry struct {
		Link external `json:"external_link"`
	}
	list := []entry{}
	add := func(label, address string) {
		if len(list) < maxAnnotations && webURL(address) {
			list = append(list, entry{external{Label: label, URL: address}})
		}
	}
	for _, c := range r.Cases {
		for _, l := range c.Links {
			add(l.Label, l.URL)
		}
	}
	for _, c := range r.Cases {
		if c.ID != "" {
			add(fmt.Sprintf("%s/%s: %s", r.Fleet, c.VM, c.State), c.URL)
		}
	}
	if len(list) == 0 {
		add("Sluice controller", r.URL)
	}
	return json.MarshalIndent(map[string][]entry{"Sluice": list}, "", "  ")
}

// webURL says whether a link may be shown as one.
func webURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && clean(text) == text && !strings.Contains(text, " ")
}

// dotenv are variables for the jobs that follow: all VMs together, then each
// of them as long as GitLab's limits have room.
func (r Report) dotenv() []byte {
	var ids []string
	address := r.URL
	for _, c := range r.Cases {
		if c.ID != "" {
			ids = append(ids, c.ID)
		}
	}
	if len(r.Cases) == 1 && r.Cases[0].URL != "" {
		address = r.Cases[0].URL
	}
	v := &variables{}
	v.add([2]string{"SLUICE_STATE", string(r.State())})
	v.add([2]string{"SLUICE_FLEET", r.Fleet})
	v.add([2]string{"SLUICE_URL", address})
	v.add([2]string{"SLUICE_OPERATIONS", strings.Join(ids, ",")})
	for _, c := range r.Cases {
		name := "SLUICE_" + variableName(c.VM)
		v.add([2]string{name + "_ID", c.ID}, [2]string{name + "_STATE", string(c.State)}, [2]string{name + "_URL", c.URL})
	}
	return []byte(v.text.String())
}

// variables are the lines of a dotenv report.
type variables struct {
	text strings.Builder
	used map[string]bool
}

// safeValue is what needs no quotes and no escapes: GitLab knows neither.
var safeValue = regexp.MustCompile(`^[A-Za-z0-9._:/,@%+=?&~\[\]-]*$`)

// add adds all of the pairs, or none if there is no room for them, a name is
// taken, or a value is no plain one.
func (v *variables) add(pairs ...[2]string) {
	if v.used == nil {
		v.used = map[string]bool{}
	}
	lines := ""
	for _, pair := range pairs {
		if v.used[pair[0]] || !safeValue.MatchString(pair[1]) {
			return
		}
		lines += pair[0] + "=" + pair[1] + "\n"
	}
	if len(v.used)+len(pairs) > maxVariables || v.text.Len()+len(lines) > maxDotenv {
		return
	}
	for _, pair := range pairs {
		v.used[pair[0]] = true
	}
	v.text.WriteString(lines)
}

// variableName is a VM's name as part of a variable's: RUNNER_01.
func variableName(vm string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		case r >= 'a' && r <= 'z':
			return r - ('a' - 'A')
		default:
			return '_'
		}
	}, vm)
}
