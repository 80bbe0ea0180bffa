/** The command line of `skiff leave` (L5). */
import path from 'node:path'
import { parseArgs } from 'node:util'
import { parseDuration } from '#api/machinery/duration'
import { messageOf } from '#base/messageOf'
import { CommandError } from '#cli/exitCodes'
import { type ControlPlaneFiles, controlPlaneFiles } from '../join/controlPlanePaths.ts'

export interface LeaveOptions {
  readonly configDir: string
  readonly rootDir: string
  /** Those of a machine that is a control plane. */
  readonly files: ControlPlaneFiles
  readonly drains: boolean
  readonly drainTimeoutMs: number
  readonly keepsNode: boolean
  readonly removesEtcdMember: boolean
  /** A kubeconfig with the rights to drain the node and delete its object; undefined: the best one that the machine has. */
  readonly kubeconfig: string | undefined
  /** The path of the container runtime's socket; undefined: what the kubelet's configuration says. */
  readonly criSocket: string | undefined
  /** Prints what would be done, and does nothing. */
  readonly dryRun: boolean
}

const flags = {
  drain: { type: 'boolean', default: false },
  'drain-timeout': { type: 'string', default: '5m' },
  'keep-node': { type: 'boolean', default: false },
  'remove-etcd-member': { type: 'boolean', default: false },
  kubeconfig: { type: 'string' },
  'cri-socket': { type: 'string' },
  'config-dir': { type: 'string', default: '/etc/kubernetes' },
  'root-dir': { type: 'string', default: '/var/lib/kubelet' },
  'dry-run': { type: 'boolean', default: false },
} as const

/** @throws CommandError usage */
export function readLeaveOptions(args: readonly string[]): LeaveOptions {
  const values = parsed(args)
  const [configDir, rootDir] = [path.resolve(values['config-dir']), path.resolve(values['root-dir'])]
  for (const [flag, folder] of [
    ['--config-dir', configDir],
    ['--root-dir', rootDir],
  ] as const) {
    // What they hold is removed.
    if (folder.split(path.sep).filter(Boolean).length < 2) throw new CommandError('usage', `${flag} ${folder}: expected a folder of the cluster's own`)
  }
  return {
    configDir,
    rootDir,
    files: controlPlaneFiles(configDir),
    drains: values.drain,
    drainTimeoutMs: timeoutOf(values['drain-timeout']),
    keepsNode: values['keep-node'],
    removesEtcdMember: values['remove-etcd-member'],
    kubeconfig: values.kubeconfig,
    criSocket: values['cri-socket']?.replace(/^unix:\/\//, ''),
    dryRun: values['dry-run'],
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: flags }).values
  } catch (error) {
    throw new CommandError('usage', messageOf(error), { hint: 'skiff leave --help lists the flags', cause: error })
  }
}

function timeoutOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms > 0) return ms
  throw new CommandError('usage', `--drain-timeout ${text}: expected a duration such as 5m`)
}
