/** Starts a cluster when the host boots (L5), by a unit of systemd. It runs `skiff start` and `skiff stop`; the supervisor does the rest. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { CommandError } from '#cli/exitCodes'
import { check } from '#host/exec'
import { exists, writeFileAtomic } from '#host/files'
import type { ClusterState } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'

/** Places of systemd; tests have others. */
export interface SystemdPlaces {
  /** There only while systemd is process 1. Upstream of that test: sd_booted(3). */
  readonly booted: string
  readonly units: string
}

const systemd: SystemdPlaces = { booted: '/run/systemd/system', units: '/etc/systemd/system' }

/** The name carries the cluster's id: clusters of two homes may have one name. */
export function unitOf({ id }: Pick<ClusterState, 'id'>): string {
  return `skiff-${id}.service`
}

/** @throws CommandError unmetPrerequisite with the reason why this host cannot do it */
export async function checkAutostart(deps: LocalClusterDeps, places = systemd): Promise<void> {
  const refuse = (reason: string) => {
    throw new CommandError('unmetPrerequisite', `--autostart cannot be set up here: ${reason}`, {
      hint: 'without --autostart, run "skiff start" after each boot',
    })
  }
  if (!(await exists(places.booted))) refuse('systemd is not process 1 of this host')
  if (!deps.isRoot) refuse('a unit of systemd needs root')
  if ((await deps.exec.run('systemctl', ['--version'])).code !== 0) refuse('systemctl is not installed')
}

/** Writes the unit and enables it. It does not start the cluster, which runs already. */
export async function enableAutostart(deps: LocalClusterDeps, state: ClusterState, places = systemd): Promise<void> {
  const unit = unitOf(state)
  await writeFileAtomic(path.join(places.units, unit), unitText(deps, state))
  await check(deps.exec, 'systemctl', ['daemon-reload'])
  await check(deps.exec, 'systemctl', ['enable', unit])
}

/** Nothing to remove is fine. */
export async function disableAutostart(deps: LocalClusterDeps, state: Pick<ClusterState, 'id'>, places = systemd): Promise<void> {
  const unit = unitOf(state)
  const file = path.join(places.units, unit)
  if (!(await exists(file))) return
  await deps.exec.run('systemctl', ['disable', unit])
  await fs.rm(file, { force: true })
  await deps.exec.run('systemctl', ['daemon-reload'])
}

/** KillMode=process: the containers and the supervisor are the cluster's to end. Delegate: nodes make cgroups of their own. */
function unitText({ self, home }: LocalClusterDeps, { name }: ClusterState): string {
  const [program = '', ...entry] = self
  const command = (verb: string, ...flags: string[]) => [quote(program), ...[...entry, verb, name, '-q', ...flags].map(quoteArgument)].join(' ')
  return `[Unit]
Description=Skiff cluster ${name}
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
Environment=${quote(`SKIFF_HOME=${home}`)}
ExecStart=${command('start', '--no-kubeconfig')}
ExecStop=${command('stop')}
KillMode=process
Delegate=yes
TimeoutStartSec=300

[Install]
WantedBy=multi-user.target
`
}

/** systemd reads quotes and backslashes as C does, and expands %. It expands $ neither in Environment= nor in the path of a program. */
function quote(word: string): string {
  return `"${word.replace(/["\\]/g, '\\$&').replaceAll('%', '%%')}"`
}

/** In the arguments of a command systemd expands $, too. */
function quoteArgument(word: string): string {
  return quote(word.replaceAll('$', '$$$$'))
}
