package behaviours

import (
	"context"
	"fmt"
	"strings"

	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/traffic"
)

// shownDisclosures is the maximum number of disclosures that a failure shows.
const shownDisclosures = 10

// secrets checks the trials of all behaviours that run in parallel: an operator that is otherwise well behaved is most
// likely to disclose something when an error occurs. The behaviour also has a trial of its own, so that it can be tried
// alone.
var secrets = behaviour{
	name:    "secrets",
	promise: "keeps the contents of Secrets out of its log, Events, status and all other objects",
	advice: "what is logged: log keys and names (klog.KObj), never a whole Secret or an object with a copy of its data; " +
		"which errors end up in a condition or an Event: a library's error may quote its input; " +
		"let pods refer to a Secret with secretKeyRef or a volume, and compare contents by a keyed hash (HMAC)",
	check: func(ctx context.Context, runner *trial.Runner) error {
		life, _, err := undisturbed(ctx, runner)
		if err != nil {
			return err
		}
		wrong := serverErrors
		if runner.LeftOut(faults.name) {
			wrong = fault{"nothing goes wrong", repeat(noRequest, traffic.Action{})}
		}
		err = runner.Try(ctx, "a whole lifecycle, while "+wrong.what, func(ctx context.Context, t *trial.Trial) error {
			_, err := withFault(ctx, t, life, wrong)
			return err
		})
		if err != nil {
			return err
		}
		return undisclosed(runner)
	},
	afterAll: undisclosed,
}

func noRequest(traffic.Request) bool { return false }

// undisclosed returns an error if a trial found the value of a Secret where it does not belong, or if there were values
// to search for, but no log, and secretsLog is not left out.
func undisclosed(runner *trial.Runner) error {
	found := runner.Disclosed()
	if len(found) == 0 && runner.SawNoLog() && !runner.LeftOut(secretsLog) {
		return errNoLog
	}
	if len(found) == 0 {
		return nil
	}
	more := ""
	if left := len(found) - shownDisclosures; left > 0 {
		found, more = found[:shownDisclosures], fmt.Sprintf("\nand %d more", left)
	}
	return fmt.Errorf("expected no value of a Secret anywhere but in Secrets\nfound\n%s%s\n"+
		"If the value of a key isn't secret, such as a host name, leave out %q",
		strings.Join(found, "\n"), more, secretsPart+"KEY")
}

// errNoLog means that the kit has seen no log, so it can't tell whether the operator logs the values of Secrets.
var errNoLog = fmt.Errorf("%w, because the kit has seen no line of the operator's log, and so can't search it\n"+
	"Use the logger in Run's context: klog.FromContext(ctx) returns it, and for a manager, set ctrl.Options.Logger to ctrl.LoggerFrom(ctx). "+
	"If the operator logs to a file, call RunOptions.LogFile. If it logs nothing, leave out %q", errNotTried, secretsLog)

// secretsLog is the part of the behaviour that an operator without a log can leave out.
const secretsLog = "secrets/log"

// secretsPart is the prefix of a part for one key of Secrets, such as "secrets/host": if an operator leaves it out, the
// key's values may appear anywhere.
const secretsPart = "secrets/"
