package main

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
	klusterv1alpha1 "example.com/operator-workshop/06-kluster-digitalocean/pkg/apis/inspirit941.dev/v1alpha1"
)

// finder is a cloud that returns one cluster by ID and one by tag. Other calls panic.
type finder struct {
	cloud.CloudProvider
	byID, byTag       *cloud.Cluster
	errByID, errByTag error
}

func (a *finder) Get(context.Context, string) (*cloud.Cluster, error) { return a.byID, a.errByID }

func (a *finder) Find(context.Context, cloud.Owner) (*cloud.Cluster, error) {
	return a.byTag, a.errByTag
}

func TestFindCluster(t *testing.T) {
	ours, theirs, shared := foundCluster(cloud.StateRunning), foundCluster(cloud.StateRunning), foundCluster(cloud.StateRunning)
	another := cloud.Owner{UID: "uid-of-another"}
	theirs.Owners = []cloud.Owner{another}
	shared.Owners = append(shared.Owners, another)
	notFound, away := &cloud.Error{Problem: cloud.NotFound, Message: "no such."}, errors.New("the connection is gone")
	tests := map[string]struct {
		account finder
		// unknown means that no ID is recorded.
		unknown bool
		want    *cloud.Cluster
		wantErr error
	}{
		"the ID finds it":                                 {account: finder{byID: ours, errByTag: errors.New("there is nothing to look for")}, want: ours},
		"the ID finds it, with a second owner":            {account: finder{byID: shared, errByTag: errors.New("there is nothing to look for")}, want: shared},
		"the ID finds nothing, but the tag finds it":      {account: finder{errByID: notFound, byTag: ours}, want: ours},
		"the ID finds another, but the tag finds it":      {account: finder{byID: theirs, byTag: ours}, want: ours},
		"the ID finds another, and the tag finds nothing": {account: finder{byID: theirs}, want: theirs},
		"neither finds anything":                          {account: finder{errByID: notFound}},
		"no ID is known, and the tag finds it":            {account: finder{byTag: ours, errByID: errors.New("there is no ID")}, unknown: true, want: ours},
		"no ID is known, and the tag finds nothing":       {account: finder{errByID: errors.New("there is no ID")}, unknown: true},
		"the cloud fails":                                 {account: finder{errByID: away}, wantErr: away},
		"the cloud fails, and no ID is known":             {account: finder{errByTag: away}, unknown: true, wantErr: away},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kluster := recordedKluster()
			if test.unknown {
				kluster = pendingKluster()
			}
			found, err := findCluster(t.Context(), &test.account, kluster)
			if test.wantErr != nil {
				g.Expect(err).To(MatchError(test.wantErr), "if the search fails, the cluster may still exist, see findCluster in reconcile.go")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(Equal(test.want), "see findCluster in reconcile.go")
		})
	}
}

func TestActOnWhatIsFound(t *testing.T) {
	two := foundCluster(cloud.StateRunning)
	two.Owners = append(two.Owners, cloud.Owner{UID: "uid-of-another"})
	onlyInStatus, misrecorded := storedKluster(), recordedKluster()
	onlyInStatus.Status.KlusterID = "id-of-front"
	misrecorded.Annotations[klusterv1alpha1.ExternalNameAnnotation] = "id-of-another"
	tests := map[string]struct {
		kluster *klusterv1alpha1.Kluster
		cluster *cloud.Cluster
		// wantReason is the reason of the blockedError, or "" if there is none.
		wantReason string
		// wantRecorded means that the operator writes the ID into the annotation.
		wantRecorded bool
	}{
		"the ID is recorded, and the cluster is gone":  {kluster: recordedKluster(), wantReason: klusterv1alpha1.ReasonLost},
		"two Klusters claim the cluster":               {kluster: recordedKluster(), cluster: two, wantReason: klusterv1alpha1.ReasonNotOwned},
		"the tag has found the cluster":                {kluster: pendingKluster(), cluster: foundCluster(cloud.StateProvisioning), wantRecorded: true},
		"only the status has the ID":                   {kluster: onlyInStatus, cluster: foundCluster(cloud.StateProvisioning), wantRecorded: true},
		"the annotation has the ID of another cluster": {kluster: misrecorded, cluster: foundCluster(cloud.StateProvisioning), wantRecorded: true},
		"the ID is recorded already":                   {kluster: recordedKluster(), cluster: foundCluster(cloud.StateProvisioning)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTrial(t, test.kluster)
			r.options.consistencyWindow = -1
			_, err := r.act(t.Context(), test.kluster, observation{cloud: &recordingAccount{}, account: "acme", cluster: test.cluster})
			if test.wantReason != "" {
				blocking, isBlocked := errors.AsType[*blockedError](err)
				g.Expect(isBlocked).To(BeTrue(), "expected %s, found: %v, see act in reconcile.go", test.wantReason, err)
				g.Expect(blocking.reason).To(Equal(test.wantReason))
				g.Expect(patches(r.api.Actions())).To(BeEmpty(), "the record must stay as it is")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if !test.wantRecorded {
				g.Expect(patches(r.api.Actions())).To(BeEmpty(), "the ID is on record already, so there is nothing to write, see act in reconcile.go")
				return
			}
			g.Expect(r.live(t).Annotations).To(And(HaveKeyWithValue(klusterv1alpha1.ExternalNameAnnotation, "id-of-front"),
				Not(HaveKey(klusterv1alpha1.CreatePendingAnnotation))), "see act in reconcile.go")
		})
	}
}
