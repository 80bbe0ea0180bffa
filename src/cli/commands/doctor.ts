/** `skiff doctor`: what this host can run, check by check: the value found, the value needed, and the exact fix (L4). */
import fs from 'node:fs/promises'
import { exists } from '#host/files'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'

export interface Finding {
  readonly check: string
  readonly ok: boolean
  /** Missing it makes real nodes impossible; otherwise only poorer. */
  readonly required: boolean
  readonly found: string
  readonly fix: string
}

export const doctor: CliCommand = {
  name: 'doctor',
  register: (program, context) => {
    program
      .command('doctor')
      .description('check what this host can run')
      .option('-o, --output <format>', 'json')
      .action(async (flags: { output?: string }) => {
        const findings = await examine(context)
        printFound(context, flags.output === 'json' ? 'json' : 'text', findings, (found) => found.map(lineOf).join(''))
        const broken = findings.filter((one) => one.required && !one.ok)
        if (broken.length > 0) {
          throw new CommandError('unmetPrerequisite', `real nodes cannot run here: ${broken.map((one) => one.check).join(', ')}`, {
            hint: 'simulated nodes can: skiff up --runtime simulated',
          })
        }
      })
  },
}

const lineOf = ({ ok, required, check, found, fix }: Finding) => `${ok ? '✓' : required ? '✗' : '!'} ${check}: ${found}${ok ? '' : `\n    fix: ${fix}`}\n`

const programs: readonly [program: string, debianPackage: string, required: boolean][] = [
  ['containerd', 'containerd', true],
  ['runc', 'runc', true],
  ['nft', 'nftables', true],
  ['ip', 'iproute2', true],
  ['nsenter', 'util-linux', true],
  ['unshare', 'util-linux', true],
  ['conntrack', 'conntrack', false],
  ['iptables', 'iptables', false],
  // For limits of pods' bandwidth.
  ['tc', 'iproute2', false],
]

/** Every check of the host, in the order shown. */
export async function examine(context: CommandContext): Promise<Finding[]> {
  const linux = context.platform === 'linux'
  const findings: Finding[] = [
    { check: 'operating system', ok: linux, required: true, found: context.platform, fix: 'real nodes need Linux' },
    { check: 'user', ok: context.isRoot, required: true, found: context.isRoot ? 'root' : 'not root', fix: 'run as root' },
  ]
  if (!linux) return findings
  for (const [program, debianPackage, required] of programs) {
    const version = await context.exec.run(program, [program === 'ip' || program === 'tc' ? '-V' : '--version'], { timeoutMs: 5000 })
    const ok = version.code !== -1
    findings.push({
      check: program,
      ok,
      required,
      found: ok ? firstLine(version.stdout || version.stderr) : 'not found',
      fix: `apt-get install ${debianPackage}`,
    })
  }
  // Without them nodes use plugins of Skiff's own, which start more slowly.
  findings.push(await fileCheck('CNI plugins', '/usr/lib/cni/ptp', 'apt-get install containernetworking-plugins, for a faster start of pods'))
  findings.push(await cgroupCheck())
  const instances = Number(await fs.readFile('/proc/sys/fs/inotify/max_user_instances', 'utf8').catch(() => '0'))
  findings.push({
    check: 'inotify instances',
    ok: instances >= 128,
    required: false,
    found: String(instances),
    fix: 'sysctl fs.inotify.max_user_instances=512',
  })
  return findings
}

async function fileCheck(check: string, file: string, fix: string): Promise<Finding> {
  const ok = await exists(file)
  return { check, ok, required: false, found: ok ? file : 'not found', fix }
}

/** The controllers that limits need: v1 hierarchies or v2's list. */
async function cgroupCheck(): Promise<Finding> {
  const needed = ['cpu', 'memory', 'pids', 'cpuset']
  const unified = await fs.readFile('/sys/fs/cgroup/cgroup.controllers', 'utf8').catch(() => undefined)
  const present = unified === undefined ? await fs.readdir('/sys/fs/cgroup').catch(() => [] as string[]) : unified.trim().split(' ')
  const missing = needed.filter((name) => !present.includes(name))
  const version = unified === undefined ? 'v1' : 'v2'
  return {
    check: 'cgroups',
    ok: missing.length === 0,
    required: true,
    found: missing.length === 0 ? `${version}: ${needed.join(', ')}` : `${version}, without ${missing.join(', ')}`,
    fix: `enable the controllers ${missing.join(', ')}`,
  }
}

const firstLine = (text: string) => text.trim().split('\n')[0] ?? ''
