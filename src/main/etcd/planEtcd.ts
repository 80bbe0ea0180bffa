/** Plans an etcd for a new cluster (L5): its members and their ports; and whether this host has the program. */
import { randomBytes } from 'node:crypto'
import type { UpOptions } from '#cli/clusterManager'
import { CommandError } from '#cli/exitCodes'
import type { LocalClusterDeps } from '../localCluster/deps.ts'
import { freePort } from '../localCluster/freePort.ts'
import { type EtcdMemberPlan, type EtcdPlan, nextNumberOf } from './members.ts'

type EtcdOptions = Pick<UpOptions, 'etcd' | 'controlPlanes'>

/** Several servers need a store that they share: without another one, as many members as are needed to lose one. */
const membersOfSeveral = 3

/** What an etcd is made of: so many members, or the embedded store behind etcd's API. */
export type EtcdSize = NonNullable<UpOptions['etcd']>

/** The etcd that a new cluster gets; undefined: none. Pure. */
export function etcdSize({ etcd, controlPlanes = 1, apiServerArgs = [] }: EtcdOptions & Pick<UpOptions, 'apiServerArgs'>): EtcdSize | undefined {
  const isThere = apiServerArgs.some((flag) => /^--etcd-servers\b/.test(flag))
  return etcd ?? (controlPlanes > 1 && !isThere ? membersOfSeveral : undefined)
}

/** @throws CommandError unmetPrerequisite when etcd is not installed, or too old */
export async function checkEtcd({ exec }: Pick<LocalClusterDeps, 'exec'>, size: EtcdSize, { etcd, controlPlanes }: EtcdOptions): Promise<void> {
  if (size === 'embedded') return
  const found = await exec.run('etcd', ['--version'], { timeoutMs: 5000 })
  const [, major, minor] = /etcd Version: (\d+)\.(\d+)/.exec(found.stdout) ?? []
  if (Number(major) === 3 && Number(minor) >= 4) return
  const what = found.code === 0 ? `needs etcd 3.4 or later, found: ${found.stdout.split('\n')[0]}` : 'needs etcd, which is not installed'
  const flag = etcd === undefined ? `--control-planes ${controlPlanes} keeps its objects in ${size} members of etcd and` : `--etcd ${etcd}`
  const otherwise = etcd === undefined ? '; or take the embedded store: --etcd embedded; or name an etcd that is there: --etcd-servers' : ''
  throw new CommandError('unmetPrerequisite', `${flag} ${what}`, { hint: `on Debian: apt install etcd-server${otherwise}` })
}

export async function planEtcd(size: EtcdSize): Promise<EtcdPlan> {
  const members: EtcdMemberPlan[] = []
  const count = size === 'embedded' ? 1 : size
  while (members.length < count) members.push(await planMember({ members }))
  return { token: randomBytes(8).toString('hex'), members, ...(size === 'embedded' ? { embedded: true } : {}), nextNumber: count + 1 }
}

/** The next member, with a name that no member has had, and ports that nothing uses at present. */
export async function planMember(plan: Pick<EtcdPlan, 'members' | 'nextNumber'>): Promise<EtcdMemberPlan> {
  const taken = new Set(plan.members.flatMap(({ clientPort, peerPort }) => [clientPort, peerPort]))
  const port = async (): Promise<number> => {
    const found = await freePort()
    if (taken.has(found)) return port()
    taken.add(found)
    return found
  }
  return { name: `etcd-${nextNumberOf(plan)}`, clientPort: await port(), peerPort: await port() }
}
