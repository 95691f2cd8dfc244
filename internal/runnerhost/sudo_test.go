package runnerhost

import (
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

const sudoersFile = "../../deploy/sudoers/sluice"

func readSudoers(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(sudoersFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sudoersCommands are the commands that the file allows, without /usr/bin/.
func sudoersCommands(t *testing.T) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(readSudoers(t)) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "/usr/bin/"); ok {
			command = strings.TrimRight(command, `,\ `)
			list = append(list, strings.ReplaceAll(command, `\=`, "="))
		}
	}
	slices.Sort(list)
	return list
}

func listedCommands() []string {
	var list []string
	for _, c := range rootCommands(testSettings()) {
		list = append(list, strings.Join(c.argv, " "))
	}
	slices.Sort(list)
	return list
}

func TestTheSudoersFileListsExactlyTheCommandsUsed(t *testing.T) {
	if file, list := sudoersCommands(t), listedCommands(); !slices.Equal(file, list) {
		t.Errorf("deploy/sudoers/sluice has\n%s\nbut the scripts use\n%s", strings.Join(file, "\n"), strings.Join(list, "\n"))
	}
}

// cases.md T13: a restart is a stop with the unit's own signal, and cuts the job.
// The one signal that is sent ends jobs whose cap has passed.
func TestNoCommandRestartsARunner(t *testing.T) {
	for _, command := range listedCommands() {
		ends := strings.HasPrefix(command, "systemctl kill ") && !strings.Contains(command, "--signal=SIGTERM --kill-whom=main")
		if strings.Contains(command, "restart") || strings.Contains(command, "reload-or") || ends {
			t.Errorf("%q could cut a job", command)
		}
	}
}

// scriptCommands are the commands that the scripts' own text runs as root or as
// the runner's user, with the variables of the test's settings.
func scriptCommands(t *testing.T) []string {
	t.Helper()
	call := regexp.MustCompile(`(?:^|[ (])(?:must|as_root|as_runner) ([a-z].*)`)
	tail := regexp.MustCompile(`(?: 2?>| <<|\)| &&).*$`)
	dir := "/run/systemd/system/gitlab-runner.service.d"
	values := strings.NewReplacer(`"`, "", "$systemd/$unit.d", dir, "$unit", "gitlab-runner.service",
		"$dropin", dir+"/zz-sluice-drain.conf", "$last_order", dir+"/zz-sluice-drain.order", "$draft", dir+"/zz-sluice-drain.new")
	files, err := fs.Glob(scriptFiles, "scripts/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		text, err := scriptFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") {
				continue
			}
			for _, part := range strings.Split(line, " && ") {
				if m := call.FindStringSubmatch(part); m != nil {
					found[values.Replace(tail.ReplaceAllString(m[1], ""))] = true
				}
			}
		}
	}
	if found["cat $1"] { // of read_file: what it is called with
		delete(found, "cat $1")
		found["cat /etc/gitlab-runner/config.toml"], found["cat /etc/gitlab-runner/.runner_system_id"] = true, true
	}
	var list []string
	for command := range found {
		list = append(list, command)
	}
	slices.Sort(list)
	return list
}

func TestTheListOfRootCommandsIsWhatTheScriptsRun(t *testing.T) {
	if scripts, list := scriptCommands(t), listedCommands(); !slices.Equal(scripts, list) {
		t.Errorf("the scripts run\n%s\nbut the list has\n%s", strings.Join(scripts, "\n"), strings.Join(list, "\n"))
	}
}

func TestNothingElseInTheScriptsAsksForSudo(t *testing.T) {
	files, err := fs.Glob(scriptFiles, "scripts/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		`as_root() { if [ "$login" = root ]; then "$@"; else sudo -n "$@"; fi; }`,
		`*sudo:* | *'not allowed to'*) refuse sudo "$*" ;;`,
		`sudo -n -u "$runner_user" "$@"`,
		`sudo -n -l "$@" >/dev/null 2>&1 || field sudo.refused "$*"`,
		`sudo_facts`, `[ "$login" = root ] || wanted`, `sudo_facts() {`,
	}
	for _, name := range files {
		text, err := scriptFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "sudo") && !strings.HasPrefix(line, "#") && !slices.Contains(allowed, line) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestVisudoAcceptsTheFile(t *testing.T) {
	visudo, err := exec.LookPath("visudo")
	if err != nil {
		missing(t, "visudo is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), visudo, "-cf", sudoersFile).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}

func TestTheSudoersFileSufficesForEveryAct(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) {
		o.RunnerUser = "gitlab-runner"
		o.Sudoers = strings.ReplaceAll(readSudoers(t), "(fedora)", "(gitlab-runner)")
	})
	settings := testSettings()
	settings.RunnerUser = "gitlab-runner"
	if err := fleet.RefuseHost(w.target().Ref, settings, w.inspect()); err != nil {
		t.Fatalf("preflight: %v", err)
	}
	if w.stop(); !w.look().ContainersKnown {
		t.Error("containers are not known")
	}
	w.restore()
	w.stop()
	if err := w.hosts.EndJobs(t.Context(), w.target(), w.order(fleet.OrderEnd)); err != nil {
		t.Error(err)
	}
}

func TestWithoutTheSudoersFileEveryCommandIsNamed(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) { o.Sudoers = "fedora ALL = (root) NOPASSWD: /usr/bin/true\n" })
	f := w.inspect()
	for _, c := range rootCommands(testSettings()) {
		if !c.optional && !c.asRunner && !strings.Contains(f.SudoErr, strings.Join(c.argv, " ")) {
			t.Errorf("%q is not in %q", c.argv, f.SudoErr)
		}
	}
}
