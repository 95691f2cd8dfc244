//go:build e2e

package e2e_test

import (
	"testing"
	"time"
)

// spoiled is something on a host for which its drain is refused, and what takes it away.
type spoiled struct {
	spoil, mend string
	told        []string
}

const unitDir = "/etc/systemd/system/gitlab-runner.service.d"

var spoils = map[string]spoiled{
	"the unit unregisters at its stop, by a drop-in in /etc": {
		spoil: `mkdir -p ` + unitDir + `; printf '[Service]\nExecStop=/usr/local/bin/gitlab-runner unregister --all-runners\n' > ` + unitDir + `/50-bye.conf; systemctl daemon-reload`,
		mend:  `rm ` + unitDir + `/50-bye.conf; systemctl daemon-reload`,
		told:  []string{"unregisters its runner at shutdown", "gitlab-runner.service: /usr/local/bin/gitlab-runner unregister"},
	},
	"the unit unregisters after its stop, by a drop-in in /run": {
		spoil: `mkdir -p /run/systemd/system/gitlab-runner.service.d; printf '[Service]\nExecStopPost=/usr/local/bin/gitlab-runner unregister --all-runners\n' > /run/systemd/system/gitlab-runner.service.d/bye.conf; systemctl daemon-reload`,
		mend:  `rm /run/systemd/system/gitlab-runner.service.d/bye.conf; systemctl daemon-reload`,
		told:  []string{"unregisters its runner at shutdown", "gitlab-runner.service: /usr/local/bin/gitlab-runner unregister"},
	},
	"a service of its own unregisters at shutdown": {
		spoil: `printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecStop=/usr/local/bin/gitlab-runner unregister --all-runners\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/remove-registration.service
			systemctl daemon-reload; systemctl --quiet enable remove-registration`,
		mend: `systemctl --quiet disable remove-registration; rm /etc/systemd/system/remove-registration.service; systemctl daemon-reload`,
		told: []string{"unregisters its runner at shutdown", "remove-registration.service: /usr/local/bin/gitlab-runner unregister"},
	},
	"a drop-in wins over the drain's": {
		spoil: `mkdir -p ` + unitDir + `; printf '[Service]\nKillMode=control-group\nTimeoutStopSec=90\n' > ` + unitDir + `/zzz-local.conf; systemctl daemon-reload`,
		mend:  `rm ` + unitDir + `/zzz-local.conf; systemctl daemon-reload`,
		told:  []string{"nothing was stopped", "KillMode=control-group", "zzz-local.conf"},
	},
	"a second unit runs a runner": {
		spoil: secondConfig + `systemd-run --quiet --unit=other-runner --uid=fedora /usr/local/bin/gitlab-runner run --config /etc/other-runner/config.toml`,
		mend:  `systemctl stop other-runner`,
		told:  []string{"2 gitlab-runner processes"},
	},
	"a second runner runs outside of any unit": {
		spoil: secondConfig + `setsid --fork sh -c 'echo $$ >/run/other.pid
				exec setpriv --reuid=fedora --regid=fedora --init-groups /usr/local/bin/gitlab-runner run --config /etc/other-runner/config.toml' </dev/null >/dev/null 2>&1
			until tr '\0' ' ' 2>/dev/null </proc/$(cat /run/other.pid)/cmdline | grep -q ^/usr/local/bin/gitlab-runner; do sleep 0.1; done`,
		mend: `kill $(cat /run/other.pid)`,
		told: []string{"2 gitlab-runner processes"},
	},
	"one sudo command is refused": {
		spoil: `cp -p /etc/sudoers.d/sluice /run/sluice.sudoers; sed -i 's/systemctl stop --no-block/systemctl stop --block/' /etc/sudoers.d/sluice`,
		mend:  `cp -p /run/sluice.sudoers /etc/sudoers.d/sluice`,
		told:  []string{"sudo refuses systemctl stop --no-block gitlab-runner.service to fedora", "deploy/sudoers/sluice"},
	},
}

// secondConfig is a second runner's, which asks nobody for jobs.
const secondConfig = `install -d -o fedora /etc/other-runner; printf 'concurrent = 1\n' > /etc/other-runner/config.toml; `

// Cases T12, T51, T60: what could cut the job or end the token is found before anything
// is stopped.
func TestAHostWhoseDrainCouldHarmIsRefusedWhileItsJobRuns(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	job := s.begin(one, longJob(45*time.Second))
	pid := one.unit("MainPID")
	for name, c := range spoils {
		one.root(c.spoil)
		said := s.sluice(exitRefused, "recreate", "lab/one", "--image", "v2", "--yes")
		s.mustMention(said, append(c.told, "lab/one")...)
		one.root(c.mend)
		one.mustBeUntouched(pid)
		if t.Failed() {
			t.Fatalf("while %s: said\n%s", name, said)
		}
	}
	s.mustNotBeDeleted(one)
	s.awaitJob(job, time.Minute, "end", finished)
	s.mustHaveSucceeded(job)
	// Mended, it is a host like any other.
	s.sluice(exitDone, "recreate", "lab/one", "--image", "v2", "--yes")
	s.mustBeNew(one, "v2")
}
