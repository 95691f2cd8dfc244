//go:build e2e

package e2e_test

import (
	"testing"
	"time"
)

// TestALoginsHabitsHideNothingOfItsHost has a login that greets on stdout, one whose shell
// is no Bourne shell, and one that speaks German.
func TestALoginsHabitsHideNothingOfItsHost(t *testing.T) {
	habits := map[string]string{
		"greeting": `
			echo 'sluice-begin; unit.MainPID=0; Welcome, root!' > /etc/motd
			printf 'Banner /etc/motd\nPrintMotd yes\n' > /etc/ssh/sshd_config.d/20-banner.conf
			printf 'cat /etc/motd\nprintf "unit.ActiveState=inactive no end of line"\n' | tee -a /etc/profile >> /home/fedora/.bashrc.new
			cat /home/fedora/.bashrc >> /home/fedora/.bashrc.new; mv /home/fedora/.bashrc.new /home/fedora/.bashrc
			systemctl reload ssh`,
		"cshell": `usermod --shell /bin/tcsh fedora; echo 'echo Welcome to tcsh' > /home/fedora/.tcshrc`,
		"german": `
			printf 'LANG=de_DE.UTF-8\nLC_ALL=de_DE.UTF-8\nLANGUAGE=de\n' | tee /etc/default/locale >> /etc/environment
			systemctl set-environment LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 LANGUAGE=de; systemctl daemon-reexec`,
	}
	s := newScene(t, "greeting", "cshell", "german")
	s.serve()
	hosts, jobs, ops := map[string]*host{}, map[string]int64{}, map[string]string{}
	for name, habit := range habits {
		h := s.host(name)
		hosts[name], jobs[name] = h, s.begin(h, longJob(35*time.Second))
		h.root(habit)
		h.shell.Close()
	}
	for name, greeting := range map[string]string{"greeting": "Welcome, root!", "cshell": "Welcome to tcsh"} {
		hosts[name].login()
		s.mustMention(hosts[name].run("true"), greeting)
	}
	s.germanIsSpoken(hosts["german"])
	for name := range habits {
		ops[name] = s.recreates(name)
	}
	for _, h := range hosts {
		h.await("deactivating")
	}
	for name, h := range hosts {
		s.mustEndWith(s.follow(ops[name], exitDone), "drained")
		s.mustHaveOutlived(h, jobs[name])
		s.mustBeNew(h, "v2")
	}
}

// germanIsSpoken fails if a login on the host speaks English, and lets sudo refuse in
// German, which must be told as a refusal all the same.
func (s *scene) germanIsSpoken(h *host) {
	s.t.Helper()
	h.login()
	if said := h.run("ls /nowhere 2>&1 || :"); said != "ls: Zugriff auf '/nowhere' nicht möglich: Datei oder Verzeichnis nicht gefunden" {
		s.t.Fatalf("the host says %q", said)
	}
	h.root(`cp -p /etc/sudoers.d/sluice /run/sluice.sudoers; sed -i 's/, SLUICE_UNIT//' /etc/sudoers.d/sluice`)
	said := s.sluice(exitRefused, "drain", "lab/"+h.Name, "--yes")
	s.mustMention(said, "sudo refuses systemctl daemon-reload", "to fedora")
	h.root(`cp -p /run/sluice.sudoers /etc/sudoers.d/sluice`)
}
