package controller

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

// noon is when the Secret that sealedSecret returns was signed.
var noon = time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)

const (
	// pass is the password in that Secret.
	pass      = "Kf3w8Zq1Tn7Bd5Xr2Mvy"
	otherPass = "Kf3w8Zq1Tn7Bd5Xr2Mvz"
)

// storedPassword returns a Password as the API server stores it, with all defaults.
func storedPassword() *secretv1.Password {
	return &secretv1.Password{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login", UID: "uid-of-login", Generation: 3},
		Spec: secretv1.PasswordSpec{SecretName: "database", Policy: secretv1.PasswordPolicy{
			Length: 20, Require: []secretv1.Requirement{{Class: secretv1.ClassDigit, Count: new(int32(5))}}, Case: secretv1.CaseMixed, Repeat: secretv1.RepeatAllowed,
		}},
	}
}

// sealedSecret returns the Secret of storedPassword.
func sealedSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	password := storedPassword()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: password.Namespace, Name: password.Spec.SecretName, Labels: ownLabels(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(password, secretv1.SchemeGroupVersion.WithKind("Password"))},
	}}
	sign(secret, password.Spec.Policy, pass, noon)
	return secret
}

func TestSign(t *testing.T) {
	g := NewWithT(t)
	secret := sealedSecret(t)
	g.Expect(secret.Data).To(HaveLen(2))
	g.Expect(secret.Data["password"]).To(BeEquivalentTo(pass))
	g.Expect(string(secret.Data["fingerprint-key"])).To(MatchRegexp(`^[A-Z2-7]{26,}$`), "the key should be text, because pods may read it as an environment variable")
	g.Expect(secret.Annotations).To(And(
		HaveKeyWithValue("secret.example.com/policy", "length=20 digits=5 symbols=0 case=Mixed repeat=Allowed"),
		HaveKeyWithValue("secret.example.com/rotated-at", "2026-05-01T12:00:00Z"),
		HaveKeyWithValue("secret.example.com/fingerprint", MatchRegexp(`^[0-9a-f]{32}$`)),
	))
	made, intact := signedAt(secret)
	g.Expect(intact).To(BeTrue())
	g.Expect(made).To(BeTemporally("==", noon))
}

func TestSignUsesUTC(t *testing.T) {
	g := NewWithT(t)
	secret := &corev1.Secret{}
	sign(secret, storedPassword().Spec.Policy, pass, noon.In(time.FixedZone("far away", 5*3600)))
	g.Expect(secret.Annotations).To(HaveKeyWithValue("secret.example.com/rotated-at", "2026-05-01T12:00:00Z"))
}

func TestSignKeepsOtherKeysAndAnnotations(t *testing.T) {
	g := NewWithT(t)
	secret := sealedSecret(t)
	secret.Data["user"], secret.Annotations["note"] = []byte("shop"), "theirs"
	key := secret.Data[fingerprintKey]
	sign(secret, storedPassword().Spec.Policy, otherPass, noon.Add(time.Hour))
	g.Expect(secret.Data).To(And(HaveLen(3), HaveKeyWithValue("user", []byte("shop"))))
	g.Expect(secret.Annotations).To(And(HaveLen(4), HaveKeyWithValue("note", "theirs")))
	g.Expect(secret.Data[fingerprintKey]).NotTo(Equal(key), "each password must have a key of its own")
}

func TestSignedAt(t *testing.T) {
	tests := map[string]struct {
		edit   func(*corev1.Secret)
		broken bool
	}{
		"nothing was edited": {edit: func(*corev1.Secret) {}},
		"an earlier version made it, with a key of 32 bytes": {edit: forge(func(secret *corev1.Secret) {
			secret.Data["fingerprint-key"] = append(make([]byte, 16), secret.Data["fingerprint-key"][:16]...)
		})},
		"another key was added":        {edit: func(secret *corev1.Secret) { secret.Data["user"] = []byte("shop") }},
		"another annotation was added": {edit: func(secret *corev1.Secret) { secret.Annotations["secret.example.com/note"] = "theirs" }},
		"the labels were removed":      {edit: func(secret *corev1.Secret) { secret.Labels = nil }},
		"the password was edited":      {edit: func(secret *corev1.Secret) { secret.Data["password"] = []byte(otherPass) }, broken: true},
		"the password was removed":     {edit: func(secret *corev1.Secret) { delete(secret.Data, "password") }, broken: true},
		"the password is empty":        {edit: func(secret *corev1.Secret) { secret.Data["password"] = nil }, broken: true},
		"the key was edited":           {edit: func(secret *corev1.Secret) { secret.Data["fingerprint-key"][25]++ }, broken: true},
		"the key was removed":          {edit: func(secret *corev1.Secret) { delete(secret.Data, "fingerprint-key") }, broken: true},
		"the policy was edited":        {edit: func(secret *corev1.Secret) { secret.Annotations["secret.example.com/policy"] += " " }, broken: true},
		"the policy was removed":       {edit: func(secret *corev1.Secret) { delete(secret.Annotations, "secret.example.com/policy") }, broken: true},
		"the time was edited": {edit: func(secret *corev1.Secret) {
			secret.Annotations["secret.example.com/rotated-at"] = "2026-05-01T12:00:01Z"
		}, broken: true},
		"the time is in another time zone": {edit: func(secret *corev1.Secret) {
			secret.Annotations["secret.example.com/rotated-at"] = "2026-05-01T13:00:00+01:00"
		}, broken: true},
		"the time was removed":                     {edit: func(secret *corev1.Secret) { delete(secret.Annotations, "secret.example.com/rotated-at") }, broken: true},
		"the fingerprint was edited":               {edit: func(secret *corev1.Secret) { secret.Annotations["secret.example.com/fingerprint"] += "0" }, broken: true},
		"the fingerprint was removed":              {edit: func(secret *corev1.Secret) { delete(secret.Annotations, "secret.example.com/fingerprint") }, broken: true},
		"all annotations were removed":             {edit: func(secret *corev1.Secret) { secret.Annotations = nil }, broken: true},
		"all data was removed":                     {edit: func(secret *corev1.Secret) { secret.Data = nil }, broken: true},
		"the signature is valid, without a key":    {edit: forge(func(secret *corev1.Secret) { delete(secret.Data, "fingerprint-key") }), broken: true},
		"the signature is valid, with a short key": {edit: forge(func(secret *corev1.Secret) { secret.Data["fingerprint-key"] = []byte("short") }), broken: true},
		"the signature is valid, but not the time": {edit: forge(func(secret *corev1.Secret) { secret.Annotations["secret.example.com/rotated-at"] = "noon" }), broken: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secret := sealedSecret(t)
			test.edit(secret)
			made, intact := signedAt(secret)
			g.Expect(intact).To(Equal(!test.broken), "see signedAt and fingerprint in signature.go")
			if intact {
				g.Expect(made).To(BeTemporally("==", noon))
			}
		})
	}
}

// forge returns a function that makes an edit and then updates the fingerprint, so that the signature matches the
// edited content.
func forge(edit func(*corev1.Secret)) func(*corev1.Secret) {
	return func(secret *corev1.Secret) {
		edit(secret)
		secret.Annotations[fingerprintAnnotation] = fingerprint(secret)
	}
}

func TestFingerprintKeepsPartsApart(t *testing.T) {
	g := NewWithT(t)
	of := func(policy, made, value string) string {
		return fingerprint(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{policyAnnotation: policy, rotatedAtAnnotation: made}},
			Data:       map[string][]byte{fingerprintKey: make([]byte, 32), "password": []byte(value)},
		})
	}
	g.Expect(of("ab", "c", "d")).NotTo(Equal(of("a", "bc", "d")), "moving text from one part to the next should change the signature")
	g.Expect(of("a", "bc", "d")).NotTo(Equal(of("a", "b", "cd")))
}

// An HMAC replaces a key that is longer than a block with the key's hash. A plain hash of key and text doesn't do that.
func TestFingerprintIsAnHMAC(t *testing.T) {
	g := NewWithT(t)
	with := func(key []byte) string {
		return fingerprint(&corev1.Secret{Data: map[string][]byte{fingerprintKey: key, "password": []byte(pass)}})
	}
	key := bytes.Repeat([]byte("k"), sha256.BlockSize+1)
	hash := sha256.Sum256(key)
	g.Expect(with(key)).To(Equal(with(hash[:])), "the fingerprint should be an HMAC with SHA-256, not a hash of the key and the rest: see fingerprint in signature.go")
}

func TestFingerprintTellsNothing(t *testing.T) {
	g := NewWithT(t)
	first, second := sealedSecret(t), sealedSecret(t)
	g.Expect(first.Data["password"]).To(Equal(second.Data["password"]))
	g.Expect(fingerprint(first)).NotTo(Equal(fingerprint(second)), "equal fingerprints would reveal equal passwords")
	for _, guess := range []string{pass, otherPass} {
		g.Expect(guessed(first, guess)).To(BeFalse(), "without the key, it should be impossible to test a guess")
	}
	for i := range len(pass) - 3 {
		g.Expect(first.Annotations[fingerprintAnnotation]).NotTo(ContainSubstring(strings.ToLower(pass[i:i+4])), "the fingerprint must not contain a part of the password")
	}
}

// guessed reports whether someone who can't read the Secret's data can confirm the guess.
func guessed(secret *corev1.Secret, guess string) bool {
	public := &corev1.Secret{ObjectMeta: *secret.ObjectMeta.DeepCopy(), Data: map[string][]byte{"password": []byte(guess)}}
	return fingerprint(public) == secret.Annotations[fingerprintAnnotation]
}

func TestReasonToGenerate(t *testing.T) {
	edited := func(secret *corev1.Secret) { secret.Data["password"] = []byte(otherPass) }
	longer := func(password *secretv1.Password) { password.Spec.Policy.Length = 21 }
	reworded := func(password *secretv1.Password) {
		password.Spec.Policy.Require = []secretv1.Requirement{{Class: secretv1.ClassSymbol, Count: new(int32(0))}, {Class: secretv1.ClassDigit, Count: new(int32(5))}}
	}
	hourly := func(password *secretv1.Password) {
		password.Spec.Rotation = &secretv1.Rotation{After: "1h"}
	}
	both := func(password *secretv1.Password) { longer(password); hourly(password) }
	tests := map[string]struct {
		change func(*secretv1.Password)
		edit   func(*corev1.Secret)
		after  time.Duration
		// want is the type and the reason of the event, or "" if no new password is needed.
		want string
	}{
		"nothing has happened":                              {after: 1000 * time.Hour},
		"the policy is reworded":                            {change: reworded},
		"the policy has changed":                            {change: longer, want: "Normal PolicyChanged"},
		"it was edited":                                     {edit: edited, want: "Warning Edited"},
		"a rotation is due":                                 {change: hourly, after: time.Hour, want: "Normal Rotated"},
		"a rotation was due long ago":                       {change: hourly, after: 50 * time.Hour, want: "Normal Rotated"},
		"a rotation is due in a nanosecond":                 {change: hourly, after: time.Hour - time.Nanosecond},
		"the password is from the future":                   {change: hourly, after: -time.Hour},
		"it was edited, and the policy has changed":         {change: longer, edit: edited, want: "Warning Edited"},
		"it was edited, and a rotation is due":              {change: hourly, edit: edited, after: 2 * time.Hour, want: "Warning Edited"},
		"the policy has changed, and a rotation is due":     {change: both, after: 2 * time.Hour, want: "Normal PolicyChanged"},
		"the policy has changed, and no rotation is due":    {change: both, want: "Normal PolicyChanged"},
		"only the policy's annotation was changed to match": {change: longer, edit: func(secret *corev1.Secret) { secret.Annotations[policyAnnotation] = "length=21" }, want: "Warning Edited"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			password, secret := storedPassword(), sealedSecret(t)
			if test.change != nil {
				test.change(password)
			}
			if test.edit != nil {
				test.edit(secret)
			}
			reason := reasonToGenerate(secret, password, noon.Add(test.after))
			if test.want == "" {
				g.Expect(reason).To(BeNil(), "see reasonToGenerate in signature.go")
				return
			}
			g.Expect(reason).NotTo(BeNil())
			g.Expect(reason.eventType + " " + reason.event).To(Equal(test.want))
			g.Expect(reason.message).NotTo(BeEmpty())
		})
	}
	g := NewWithT(t)
	g.Expect(reasonToGenerate(nil, storedPassword(), noon).event).To(Equal("Generated"), "there is no Secret")
}
