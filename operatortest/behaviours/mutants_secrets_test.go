package behaviours

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/trial"
)

// Flaws of operators that keep a password in a Secret.
const (
	logsSecret       mutation = "logs its whole Secret"
	logsEncoded      mutation = "logs its password in base64"
	tellsByEvent     mutation = "puts its password into an Event"
	tellsByCondition mutation = "puts its password into the message of a condition"
	annotatesSecret  mutation = "puts its password into an annotation of its ConfigMap"
	tellsOnError     mutation = "logs its password when its Secret can't be created"
	printsSecret     mutation = "is a process that prints its password"
)

// copiesSecret is a correct operator that resembles these.
const copiesSecret mutation = "puts its password into another Secret, too, and logs its host name"

// unheard logs to a logger that the kit doesn't know.
const unheard mutation = "does not use the kit's logger"

const (
	// password contains characters that are escaped in JSON and in logs.
	password = `Tr0ub4dor "and" 3`
	hostname = "gadgets.example.com"
)

// printed contains the names of the files to which printsSecret prints, by namespace.
var printed sync.Map

// confidingOperator describes the operators that keep a password.
func confidingOperator(flaw mutation, operator operatortest.Operator) operatortest.Operator {
	operator.Roles = []string{"testdata/gadget/role-secrets.yaml"}
	operator.Children = append(operator.Children, operatortest.Child{Kind: corev1.SchemeGroupVersion.WithKind("Secret")})
	operator.MaxWrites++
	operator.LeftOut = map[string]string{"secrets/host": "a host name is not secret"}
	if flaw == copiesSecret {
		operator.Children = append(operator.Children, operatortest.Child{
			Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Name: func(gadget *unstructured.Unstructured) string { return gadget.GetName() + "-copy" },
		})
		operator.MaxWrites++
	}
	return operator
}

// keepPassword does what the reference operator does. Before the ConfigMap, it also creates a Secret, and calls
// disclose.
func (r *gadgetReconciler) keepPassword(ctx context.Context, gadget *unstructured.Unstructured) error {
	secret := newSecret(gadget)
	secret.Data = map[string][]byte{"password": []byte(password), "host": []byte(hostname)}
	if err := r.begin(ctx, gadget); err != nil {
		return err
	}
	created := r.Create(ctx, secret)
	if err := client.IgnoreAlreadyExists(created); err != nil {
		if r.flaw == tellsOnError {
			log.FromContext(ctx).Error(err, "The Secret is not made", "password", string(secret.Data["password"]))
		}
		return err
	}
	log.FromContext(ctx).Info("The gadget has a password", "secret", secret.Name, "host", hostname)
	return errors.Join(r.disclose(ctx, gadget, secret), r.keepConfigMap(ctx, gadget))
}

// disclose logs, prints or copies a Secret, or puts the password into an Event, depending on the flaw. With some flaws,
// it does nothing.
func (r *gadgetReconciler) disclose(ctx context.Context, gadget *unstructured.Unstructured, secret *corev1.Secret) error {
	switch r.flaw {
	case logsSecret:
		log.FromContext(ctx).Info("A Secret is made", "secret", secret)
	case logsEncoded:
		log.FromContext(ctx).Info("A Secret is made", "password", base64.StdEncoding.EncodeToString(secret.Data["password"]))
	case tellsByEvent:
		if _, again := r.memory.LoadOrStore(gadget.GetUID(), true); !again {
			r.recorder.Eventf(gadget, nil, corev1.EventTypeNormal, "PasswordMade", "Reconcile", "the password is %s", password)
		}
	case printsSecret:
		path, _ := printed.Load(gadget.GetNamespace())
		return os.WriteFile(path.(string), secret.Data["password"], 0o600)
	case copiesSecret:
		another := secret.DeepCopy()
		another.ObjectMeta = metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name + "-copy", OwnerReferences: secret.OwnerReferences}
		return client.IgnoreAlreadyExists(r.Create(ctx, another))
	}
	return nil
}

// printTo gives an operator a file to which it can print, as a process does to its log. It returns the function that
// removes the file.
func printTo(options operatortest.RunOptions) (remove func(), err error) {
	file, err := os.CreateTemp("", "gadget-*.log")
	if err != nil {
		return nil, err
	}
	printed.Store(options.Namespace, file.Name())
	return func() { _ = os.Remove(file.Name()) }, errors.Join(file.Close(), options.LogFile(file.Name()))
}

var _ = Describe("the test kit", func() {
	catches("discloses what is in a Secret",
		mutant{secrets, logsSecret, "password in Secret gadget, in the log of operator 1 of the trial secrets/"},
		mutant{secrets, logsEncoded, "password in Secret gadget, in the log of operator 1"},
		mutant{secrets, tellsByEvent, "password in Secret gadget, in Event "},
		mutant{secrets, tellsByCondition, "password in Secret gadget, in Gadget gadget of the trial "},
		mutant{secrets, annotatesSecret, "password in Secret gadget, in ConfigMap settings of the trial "},
		mutant{secrets, tellsOnError, `"password"="<password in Secret gadget>"`},
		mutant{secrets, printsSecret, "password in Secret gadget, in the log of operator 1"},
	)
})

var _ = It(`the behaviour "secrets" also searches trials other than its own`, func(ctx SpecContext) {
	runner, err := trial.NewRunner(ctx, mutant{lacking: secrets, flaw: logsEncoded}.operator(), cluster)
	Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	running := newSession(ctx, runner)
	defer running.end()
	runner.OnlyTrial = "silent/nothing" // the behaviour's own trial is skipped
	running.start(secrets)
	Expect(running.result(ctx, secrets)).To(MatchError(ContainSubstring("in the log of operator 1 of the trial /a-new-resource")))
})

var _ = pooledIt("a value that is not secret is found unless its key is left out", func(ctx context.Context, g Gomega) {
	operator := mutant{lacking: secrets, flaw: copiesSecret}.operator()
	operator.LeftOut = nil
	g.Expect(tryReport(ctx, secrets, operator, `host in Secret gadget`)).To(Succeed())
})

var _ = pooledIt(`the behaviour "secrets" is reported as not tried if the kit sees no log of the operator`, func(ctx context.Context, g Gomega) {
	operator := mutant{lacking: secrets, flaw: unheard}.operator()
	runner, err := trial.NewRunner(ctx, operator, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	g.Expect(secrets.try(ctx, runner)).To(And(MatchError(errNotTried), MatchError(And(
		HavePrefix(`behaviour "secrets": not tried, because the kit has seen no line of the operator's log`),
		ContainSubstring("ctrl.LoggerFrom(ctx)"), ContainSubstring(`leave out "secrets/log"`),
	))))
	runner.Operator.LeftOut[secretsLog] = "it logs nothing"
	g.Expect(checkLeftOut(runner.Operator.LeftOut)).To(Succeed())
	g.Expect(secrets.try(ctx, runner)).To(Succeed())
})
