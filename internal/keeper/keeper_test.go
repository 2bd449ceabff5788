package keeper

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// idleVariable is the environment variable that makes this test binary a keeper, and says how long the keeper waits.
const idleVariable = "KEEPER_IDLE"

// long is a time limit that no test reaches.
const long = time.Minute

func TestMain(m *testing.M) {
	idle, err := time.ParseDuration(os.Getenv(idleVariable))
	if err != nil {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err = Run(ctx, os.Args[1], idle, os.Stdout)
	stop()
	if err != nil {
		fmt.Println("keeper:", err)
		os.Exit(1)
	}
}

// borrow borrows a folder from a keeper that waits for the given time, and ends this keeper after the test.
func borrow(t *testing.T, state string, idle time.Duration) (folder string, giveBack func()) {
	t.Helper()
	g := NewWithT(t)
	t.Setenv(idleVariable, idle.String())
	folder, end, err := Borrow(t.Context(), state, os.Args[0], state)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(folder).To(BeADirectory())
	t.Cleanup(func() { g.Expect(os.RemoveAll(state)).To(Succeed()) })
	return folder, func() { g.Expect(end()).To(Succeed()) }
}

func gone(t *testing.T, folder string) {
	t.Helper()
	NewWithT(t).Eventually(folder, long, poll).ShouldNot(BeADirectory())
}

func TestTheNextCheckGetsTheSameFolder(t *testing.T) {
	g := NewWithT(t)
	state := filepath.Join(t.TempDir(), "a checkout")
	first, giveBack := borrow(t, state, long)
	giveBack()
	second, giveBack := borrow(t, state, long)
	g.Expect(second).To(Equal(first))

	other, giveBackOther := borrow(t, state, long)
	g.Expect(other).NotTo(Equal(first), "two checks must not use the same control plane at the same time")
	giveBackOther()
	g.Expect(other).NotTo(BeADirectory(), "giving it back must remove a folder that is only for this process")
	giveBack()
	g.Expect(first).To(BeADirectory())
}

func TestAnUnusedFolderIsRemoved(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	const idle = 100 * time.Millisecond
	first, giveBack := borrow(t, state, idle)
	g.Consistently(first, 5*idle, poll).Should(BeADirectory(), "a check is using it")
	giveBack()
	gone(t, first)
	second, giveBack := borrow(t, state, idle)
	g.Expect(second).NotTo(Equal(first))
	giveBack()
	gone(t, second)
}

func TestEndEndsAKeeperThatNoCheckUses(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	g.Expect(End(t.Context(), state)).To(BeFalse(), "there is no keeper yet")
	folder, giveBack := borrow(t, state, long)
	g.Expect(End(t.Context(), state)).To(BeFalse(), "a check is using the folder")
	g.Expect(folder).To(BeADirectory())
	giveBack()
	g.Expect(End(t.Context(), state)).To(BeTrue())
	g.Expect(folder).NotTo(BeADirectory())
	g.Expect(End(t.Context(), state)).To(BeFalse(), "the keeper has ended")
}

func TestAfterAKeeperHasBeenKilledTheNextCheckStartsAnother(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	first, giveBack := borrow(t, state, long)
	giveBack()
	id, _, err := running(state)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(syscall.Kill(id, syscall.SIGKILL)).To(Succeed())
	gone(t, first)
	second, giveBack := borrow(t, state, long)
	g.Expect(second).NotTo(Equal(first))
	giveBack()
}

func TestAKeeperEndsWithItsCheckout(t *testing.T) {
	state := t.TempDir()
	folder, giveBack := borrow(t, state, long)
	giveBack()
	NewWithT(t).Expect(os.RemoveAll(state)).To(Succeed())
	gone(t, folder)
}

func TestAKeeperThatDoesNotStartIsAnError(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	_, _, err := Borrow(t.Context(), state, "sh", "-c", "echo no space left on device; exit 1")
	g.Expect(err).To(MatchError(ContainSubstring(`share a control plane: start the keeper: it printed "no space left on device"`)))
	_, giveBack := borrow(t, state, long) // the lock must be free
	giveBack()
}
