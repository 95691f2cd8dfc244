//go:build e2e

package e2e_test

import (
	"testing"
	"time"
)

func TestWhileRunIsFullNothingIsStoppedAndTheDrainSaysWhy(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	s.serve()
	job := s.begin(one, longJob(30*time.Second))
	pid := one.unit("MainPID")
	// Full to the last byte: the drop-in cannot be written.
	one.root(`
		mount -o remount,size=$(( $(df --output=used -k /run | tail -n 1) + 256 ))k /run
		dd if=/dev/zero of=/run/filler bs=4k 2>/dev/null || :`)
	op := s.recreates("one")
	s.awaitSaid(20*time.Second, "No space left on device", "op", "show", op)
	one.mustBeUntouched(pid)
	// Room for the drop-in, and too little for systemd: it refuses to reload.
	one.root(`rm /run/filler; mount -o remount,size=$(( $(df --output=used -k /run | tail -n 1) + 4096 ))k /run`)
	s.awaitSaid(20*time.Second, "daemon-reload", "op", "show", op)
	one.mustBeUntouched(pid)
	one.root(`mount -o remount,size=512m /run`)
	one.await("deactivating")
	s.mustEndWith(s.follow(op, exitDone), "drained")
	s.mustHaveSucceeded(job)
	s.mustBeNew(one, "v2")
}

func TestARootThatIsReadOnlyHindersNoDrain(t *testing.T) {
	s := newScene(t, "one", "two")
	one, two := s.host("one"), s.host("two")
	s.serve()
	job := s.begin(one, longJob(15*time.Second))
	// As on an image-based system: what changes is elsewhere.
	one.root(`for dir in /home /var /tmp; do mount --bind $dir $dir; done; mount -o remount,bind,ro /`)
	if said := one.root("touch /etc/probe 2>&1 || :"); said == "" {
		t.Fatal("the root is not read-only")
	}
	op := s.recreates("one")
	s.mustEndWith(s.follow(op, exitDone), "drained")
	s.mustHaveSucceeded(job)
	s.mustBeNew(one, "v2")

	// Where podman cannot write either, nothing can be said of the containers.
	pid := two.unit("MainPID")
	two.root("mount -o remount,bind,ro /")
	said := s.sluice(exitRefused, "recreate", "lab/two", "--image", "v2", "--yes")
	s.mustMention(said, "lab/two", "read-only file system")
	two.mustBeUntouched(pid)
}
