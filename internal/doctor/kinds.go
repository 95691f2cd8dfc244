package doctor

import "gitlab.com/sluice-runners/sluice/internal/fleet"

var tokenKinds = []Kind{
	{
		CodeNoToken, "token", SeverityError, "the fleet has neither a GitLab token nor a runner token",
		"nothing could be proven: drains are refused", "set gitlab.token (scope read_api) or the fleet's runner.token",
	},
	{
		CodeNoGitLabToken, "token", SeverityWarning, "there is no GitLab token",
		"drains rest on host evidence alone; jobs are not named and orphans are not found", "set gitlab.token to one with scope read_api",
	},
	{
		CodeTokenScope, "token", SeverityError, "the GitLab token has neither read_api nor api",
		blind, "make a token with scope read_api and put it into gitlab.token",
	},
	{
		CodeTokenEndsSoon, "token", SeverityWarning, "the GitLab token expires within two weeks",
		"from then on GitLab's word is unknown", "rotate it in time",
	},
	{
		CodeTokenBlind, "token", SeverityWarning, "the GitLab token's user is less than a Reporter in a project of a project runner",
		"GitLab leaves that project's jobs out of its lists without a word: they are not named, and their orphans are not found",
		"give the token's user the Reporter role in that project, or use a token of a user who has it",
	},
	{
		CodeTokenSightUnknown, "token", SeverityWarning, "GitLab could not be asked which of the runner's projects the token sees",
		"jobs of some projects may be left out of GitLab's lists without a word", "see what GitLab answered, and try again",
	},
	{
		CodeRunnerTokenExpires, "token", SeverityError, "the runner token has an expiry",
		"the first runner that rotates it ends it for every other VM of the fleet",
		"remove the expiry of runner tokens in GitLab's settings and reset it once by hand; then write it anew to every config.toml",
	},
	{
		CodeRunnerTokenUnknown, "token", SeverityWarning, "GitLab could not be asked whether the runner token lives",
		"it is not known whether the runner token lives", "see whether GitLab answers, and try again",
	},
	{
		CodeRunnerTokenDead, "token", SeverityError, "GitLab refuses the runner token, and the VMs run with the same one",
		"the runner token is dead: no VM with it gets jobs",
		"if GitLab's page of the runner entry is gone or its token was reset, give the hosts and runner.token the token of a live entry",
	},
	{
		CodeRunnerTokenRefused, "token", SeverityError, "GitLab refuses runner.token, and no VM is known to run with it",
		noManager + "; the VMs' own token is not touched by this", "compare runner.token with config.toml on a host before anything is changed in GitLab",
	},
	{
		CodeRunnerTokenForeign, "identity", SeverityWarning, "no [[runners]] entry of a VM has runner.token",
		"its manager cannot be removed after a delete, and the VM may belong to another runner", compareToken,
	},
}

var gitlabKinds = []Kind{
	{
		CodeGitLabUnread, "gitlab", SeverityError, "GitLab does not answer, or refuses, what a drain asks of it",
		blind, "the finding says what GitLab answered",
	},
	{
		CodeGitLabTooOld, "gitlab", SeverityWarning, "GitLab does not say whether a manager runs a job (job_execution_status is missing)",
		"idle cannot be proven by GitLab; at the cap on_unproven decides", "use GitLab 18 or newer",
	},
	{
		CodeRunnerPaused, "gitlab", SeverityWarning, "the runner entry is paused in GitLab",
		"no VM of the fleet gets jobs, and a new one never shows that it serves by a job", "resume it in GitLab; Sluice never does",
	},
	{
		CodeNoManagerSeen, "gitlab", SeverityError, "the token sees no manager of the runner entry",
		blind, "check runner.id, and that the token's user may see the runner",
	},
}

var providerKinds = []Kind{
	{
		CodeProviderUnread, "provider", SeverityError, "the provider does not list the fleet's VMs",
		"no VM can be found, deleted or created", "the finding says what the provider answered",
	},
	{
		CodeVMMissing, "reach", SeverityWarning, "the provider knows no VM of a name in the configuration",
		"it does not serve", "sluice create FLEET/VM",
	},
	{
		CodeVMAmbiguous, "reach", SeverityError, "the provider has two instances or more of one name",
		"Sluice cannot tell which one is meant and refuses", "delete the one that is not wanted, by its id",
	},
	{CodeVMOff, "reach", SeverityWarning, "the VM's instance does not run", "it does not serve", "start it, or recreate it"},
	{
		CodeVMNoAddress, "reach", SeverityError, "the VM's instance has no address",
		"it cannot be reached to stop its intake", "see that the provider reports one",
	},
	{
		CodeVMExtra, "provider", SeverityWarning, "the provider has an instance of the fleet that the configuration does not name",
		"if it runs a runner, it takes the fleet's jobs, and nobody drains or renews it", "add it to vms, or drain it and delete it at the provider",
	},
	{
		CodeCreateForbidden, "provider", SeverityError, "the provider does not permit to create a VM of the fleet",
		unborn, "give the controller's identity the right that the finding names",
	},
	{
		CodeImageMissing, "provider", SeverityError, "the fleet's image is not there",
		unborn + ", unless it names another image", "build the image, or name one that is there in the provider's settings",
	},
	{
		CodeCreateInvalid, "provider", SeverityError, "the provider refuses the fleet's template or its names",
		unborn, "the finding says what the provider refuses",
	},
	{
		CodeNoRoom, "provider", SeverityWarning, "the provider has no quota or no capacity for another VM of the fleet",
		"a recreate may wait for room between its delete and its create", "raise the quota, or name fallbacks",
	},
	{
		CodeCreateUnknown, "provider", SeverityWarning, "the provider could not be asked whether a VM of the fleet can be created",
		"a missing right or template shows only when an operation is asked for", "see what the provider answered, and try again",
	},
}

const unreached = "its intake cannot be stopped: an operation waits for it and then fails"

var reachKinds = []Kind{
	{
		CodeHostKeysOff, "reach", SeverityWarning, "host.host_keys is off: any host key is taken",
		"whoever answers at a VM's address is believed: its word decides when a VM is deleted",
		"set host.host_keys to provider, or to tofu where the provider reports no keys",
	},
	{
		CodeHostKeyWrong, "reach", SeverityError, "the host shows another key than the incarnation's",
		unreached, "find out why: another machine has the address, or its keys were changed; compare them on the VM's console",
	},
	{
		CodeLoginRefused, "reach", SeverityError, "the host refuses the login",
		unreached, "see that host.user is right and the public key of host.key is in its authorized_keys",
	},
	{
		CodeHostUnreachable, "reach", SeverityError, "the host does not answer over SSH",
		unreached, "see whether it runs, its sshd, and the network between",
	},
	{
		CodeHostUnusable, "reach", SeverityError, "what the host answers cannot be used",
		unreached, "the finding says what is missing on the host",
	},
}

// hostKinds are what a host is refused for, as fleet.Refusals finds it, and
// what makes it less safe.
var hostKinds = []Kind{
	{Code(fleet.FaultSystemdSilent), "units", SeverityError, "systemd gives no answer", refused, "see the host: systemctl show UNIT"},
	{
		Code(fleet.FaultUnitMissing), "units", SeverityError, "there is no such unit on the host", refused,
		"set host.unit of the fleet to the runner's unit",
	},
	{
		Code(fleet.FaultMainProcess), "units", SeverityError, "the unit's main process is not gitlab-runner run, but for example a shell",
		"the wrapper swallows SIGQUIT and the job would be cut, so " + refused, "start gitlab-runner directly in ExecStart= (or with exec in the wrapper)",
	},
	{
		Code(fleet.FaultTwoRunners), "units", SeverityError, "more than one gitlab-runner runs on the host",
		"stopping one does not stop intake, and the other's job would be cut, so " + refused, "leave one runner unit per VM",
	},
	{Code(fleet.FaultRunnerOutside), "units", SeverityError, "gitlab-runner runs, but not under host.unit", refused, "set host.unit to the unit that runs it"},
	{
		Code(fleet.FaultSudoNone), "sudo", SeverityError, "sudo allows the login nothing of what Sluice runs", refused,
		"install deploy/sudoers/sluice on the host (visudo -cf checks it)",
	},
	{
		Code(fleet.FaultSudoRefused), "sudo", SeverityError, "sudo refuses some of what Sluice runs", refused,
		"install deploy/sudoers/sluice on the host (visudo -cf checks it)",
	},
	{
		Code(fleet.FaultOtherConfig), "units", SeverityError, "the runner uses another config.toml than host.config", refused,
		"set host.config of the fleet, and in deploy/sudoers/sluice, to the file that the runner uses",
	},
	{
		Code(fleet.FaultUnregisters), "units", SeverityError, "the host unregisters its runner at a stop or at shutdown",
		"with a shared token that can end the whole fleet, so " + refused, "disable it on the host, and in the image; Sluice removes only the VM's own manager",
	},
	{
		Code(fleet.FaultContainersUnread), "units", SeverityError, "the containers of host.runner_user cannot be listed", refused,
		"set host.runner_user to the user that runs the jobs, and see that podman is installed and that sudo allows it as that user; root's list is empty and would look idle",
	},
	{
		CodePodmanAsRoot, "units", SeverityWarning, "host.runner_user is root, but the runner runs as another user",
		"root's list of containers is empty whatever runs: containers that a crash left are not seen", "set host.runner_user to the user of the unit",
	},
	{
		CodeKillMode, "units", SeverityWarning, "the unit has KillMode=control-group and the runner a shell executor",
		"a stop by anybody but Sluice signals the job's own processes: the job fails at once",
		"set KillMode=mixed in the unit, and remove the drop-in that says otherwise",
	},
	{
		CodeOverrideLate, "units", SeverityError, "a drop-in of the unit sorts behind Sluice's and sets what it sets",
		"the drain's values do not take effect: a stop is refused", "give the drop-in a name that sorts before zz-sluice-drain.conf",
	},
	{
		CodeEntriesMixed, "identity", SeverityWarning, "config.toml serves more than one runner entry",
		"a drain stops the intake of all of them, and of the others' jobs GitLab is not asked", "leave one [[runners]] entry per VM",
	},
	{
		CodeClockOff, "units", SeverityWarning, "the host's clock is off by more than a minute",
		"certificates and tokens may be refused, and the ages of containers and the times in its log are wrong", "let it follow an NTP server: timedatectl set-ntp true",
	},
	{
		CodeSystemdOld, "units", SeverityWarning, "the host's systemd is older than 246, which first knew TimeoutStopFailureMode=",
		"Sluice was never run with one: what its drain sets may not take effect, and is read back before a stop", "use an image with a newer systemd",
	},
}

var identityKinds = []Kind{
	{
		Code(fleet.FaultTwoSystemIDs), "identity", SeverityError, "the host has more than one .runner_system_id", refused,
		"leave one .runner_system_id, the one beside the config.toml in use",
	},
	{
		Code(fleet.FaultIdentityUnread), "identity", SeverityError, "the runner's .runner_system_id or config.toml cannot be read", refused,
		"set host.config to the config.toml that the unit uses; deploy/sudoers/sluice allows the read",
	},
	{
		CodeSystemIDShared, "identity", SeverityError, "two VMs have the same system_id",
		"GitLab cannot tell them apart, so neither is ever proven idle",
		"the image carries a machine-id or .runner_system_id: remove both from it (an empty /etc/machine-id is made anew at boot), then recreate the VMs",
	},
	{
		CodeSystemIDBaked, "identity", SeverityWarning, "the .runner_system_id was not made on this machine: its machine-id gives another",
		"every VM made of the image has this system_id: GitLab takes them for one, and the manager of a deleted VM for that of its successor",
		"remove .runner_system_id from the image, then recreate the VM",
	},
	{
		CodeVMWithoutManager, "identity", SeverityError, "a runner runs on the VM, and GitLab knows no manager of it",
		"its jobs cannot be seen: operations on it are refused",
		"see that the host's config.toml holds a token of this runner entry, and that the runner has contacted GitLab",
	},
	{
		CodeManagerWithoutVM, "identity", SeverityWarning, "a manager of the runner entry has contacted GitLab lately, and no VM of the fleet has its system_id",
		"a machine that Sluice does not know takes the fleet's jobs, or a VM was deleted past Sluice",
		"find the machine by the address on the runner's page in GitLab: add it to vms, or stop its runner; if it is gone, remove the manager there",
	},
	{
		CodeManagerAmbiguous, "identity", SeverityWarning, "GitLab has more than one manager with the VM's system_id",
		"GitLab's word on it is ambiguous and counts as unknown", "remove the stale ones on the runner's page in GitLab",
	},
	{
		CodeManagerOffline, "identity", SeverityWarning, "the runner runs, but GitLab calls its manager offline",
		"it gets no jobs", "see the runner's log on the host: journalctl -u UNIT",
	},
}

var webhookKinds = []Kind{
	{
		CodeWebhooksUnknown, "webhook", SeverityWarning, "the webhooks that a trigger waits for cannot be looked at",
		"whether its events are sent is not known", "look at Settings > Webhooks of the project, and test the webhook there",
	},
	{
		CodeWebhookMissing, "webhook", SeverityError, "a trigger's project has no webhook that comes here",
		"its triggers never fire", "add one in GitLab: Settings > Webhooks, docs/webhooks.md says how",
	},
	{
		CodeWebhookEvents, "webhook", SeverityError, "no webhook of a trigger's project sends the events it waits for",
		"the trigger never fires", "tick them on the webhook's page in GitLab: Settings > Webhooks",
	},
	{
		CodeWebhookDisabled, "webhook", SeverityError, "GitLab has disabled a webhook",
		lost, "mend what it answered, then test it in GitLab: that enables it again",
	},
	{
		CodeWebhookRefused, "webhook", SeverityWarning, "the last delivery of a webhook was not answered with success",
		lost + " while it goes on, and GitLab disables it", "see its recent events in GitLab and the log of the server; 401 is a wrong token",
	},
	{
		CodeWebhookUnverified, "webhook", SeverityWarning, "a webhook does not verify the certificate of this server",
		"whoever is between may read the secret token", "enable SSL verification on the webhook's page",
	},
}
