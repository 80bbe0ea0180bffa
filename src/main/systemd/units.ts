/** Units of systemd (L5): their text, and how they are installed and removed. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { CommandError } from '#cli/exitCodes'
import { check, type Exec } from '#host/exec'
import { exists, readTextIfExists, writeFileAtomic } from '#host/files'

/** Places of systemd; tests have others. */
export interface SystemdPlaces {
  /** There only while systemd is process 1. Upstream of that test: sd_booted(3). */
  readonly booted: string
  readonly units: string
}

const systemd: SystemdPlaces = { booted: '/run/systemd/system', units: '/etc/systemd/system' }

export interface Unit {
  /** Ends in `.service`. */
  readonly name: string
  readonly description: string
  readonly command: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** `always`: it has no orderly end but that by systemd. */
  readonly restart: 'on-failure' | 'always'
  /** `mixed`: what the command has started ends with it. `process`: it outlives the command, which ends what has to end. */
  readonly killMode: 'mixed' | 'process'
}

interface Host {
  readonly exec: Exec
  readonly isRoot: boolean
}

/** @throws CommandError unmetPrerequisite with the reason why this host cannot have units */
export async function checkSystemd({ exec, isRoot }: Host, flag: string, hint: string, places = systemd): Promise<void> {
  const refuse = (reason: string) => {
    throw new CommandError('unmetPrerequisite', `${flag} cannot be set up here: ${reason}`, { hint })
  }
  if (!(await exists(places.booted))) refuse('systemd is not process 1 of this host')
  if (!isRoot) refuse('a unit of systemd needs root')
  if ((await exec.run('systemctl', ['--version'])).code !== 0) refuse('systemctl is not installed')
}

/** Writes the unit, and lets it start at each boot. @param now start it now, too, and again when its text has changed */
export async function installUnit({ exec }: Pick<Host, 'exec'>, unit: Unit, now: boolean, places = systemd): Promise<void> {
  const file = path.join(places.units, unit.name)
  const [before, text] = [await readTextIfExists(file), unitText(unit)]
  await writeFileAtomic(file, text)
  await check(exec, 'systemctl', ['daemon-reload'])
  await check(exec, 'systemctl', ['enable', unit.name])
  if (now) await check(exec, 'systemctl', [before === undefined || before === text ? 'start' : 'restart', unit.name])
}

/** @param now stop it, too. @returns false when there is no such unit @throws Error when it cannot be stopped: the unit then stays */
export async function removeUnit({ exec }: Pick<Host, 'exec'>, name: string, now: boolean, places = systemd): Promise<boolean> {
  const file = path.join(places.units, name)
  if (!(await exists(file))) return false
  if (now) await check(exec, 'systemctl', ['stop', name])
  await exec.run('systemctl', ['disable', name])
  await fs.rm(file, { force: true })
  await exec.run('systemctl', ['daemon-reload'])
  return true
}

/** Delegate: nodes make cgroups of their own, whose tasks are not those of the unit to limit. */
export function unitText({ description, command: [program = '', ...args], environment = {}, restart, killMode }: Unit): string {
  const variables = Object.entries(environment).map(([name, value]) => `Environment=${quote(`${name}=${value}`)}\n`)
  return `[Unit]
Description=${description}
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
${variables.join('')}ExecStart=${[quote(program), ...args.map(quoteArgument)].join(' ')}
Restart=${restart}
RestartSec=5
KillMode=${killMode}
Delegate=yes
TasksMax=infinity
TimeoutStopSec=120

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
