/** Decides what nodes run on (L5): containerd where this host can, else simulated, and says why. */
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import type { Exec } from '#host/exec'

export interface HostFacts {
  readonly exec: Exec
  readonly isRoot: boolean
  readonly platform: string
}

const programs = ['containerd', 'runc', 'nft', 'ip', 'nsenter', 'unshare'] as const

export async function chooseRuntime(host: HostFacts, asked: 'auto' | 'containerd' | 'simulated', progress: Progress): Promise<'containerd' | 'simulated'> {
  if (asked === 'simulated') return 'simulated'
  const obstacle = await whyNotReal(host)
  if (!obstacle) return 'containerd'
  if (asked === 'containerd')
    throw new CommandError('unmetPrerequisite', `nodes with containerd cannot run here: ${obstacle}`, { hint: 'skiff doctor says what to do' })
  progress.note(`Nodes are simulated: ${obstacle}. Pods are scheduled and become Running, but no container starts.`)
  return 'simulated'
}

async function whyNotReal(host: HostFacts): Promise<string | undefined> {
  if (host.platform !== 'linux') return `real nodes need Linux, this is ${host.platform}`
  if (!host.isRoot) return 'real nodes need root'
  for (const program of programs) {
    const { code } = await host.exec.run(program, [program === 'ip' ? '-V' : '--version'], { timeoutMs: 5000 })
    if (code === -1) return `${program} is not installed`
  }
  return undefined
}
