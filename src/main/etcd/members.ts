/**
 * The members of a local cluster's own etcd (L5, pure): their names, ports and folders, and the command line that runs each. They listen on loopback,
 * and take only clients and peers with a certificate of the cluster's authority for etcd. Upstream: kubeadm's phases etcd and certs.
 */
import path from 'node:path'
import { greatest } from '#base/extremes'

/** Folders of the cluster. */
interface Places {
  readonly dir: string
  readonly pki: string
}

export interface EtcdMemberPlan {
  /** `etcd-1`, … */
  readonly name: string
  readonly clientPort: number
  readonly peerPort: number
  /** For a member that was added: the members at that time, as --initial-cluster. Absent: it began with the cluster. */
  readonly joined?: string | undefined
  /** When it was added, in milliseconds of the clock. Absent: it began with the cluster, or an earlier version added it. */
  readonly addedMs?: number | undefined
}

export interface EtcdPlan {
  /** Keeps members from joining another cluster that they can reach by mistake. */
  readonly token: string
  readonly members: readonly EtcdMemberPlan[]
  /** The only member is `skiff etcd serve`, not etcd. */
  readonly embedded?: true | undefined
  /**
   * The number in the name of the next member. The supervisor and the folders know members by their names, so the number of a removed member is not reused.
   * Absent in a plan of an earlier version.
   */
  readonly nextNumber?: number | undefined
}

export function nextNumberOf({ members, nextNumber = 1 }: Pick<EtcdPlan, 'members' | 'nextNumber'>): number {
  return greatest([nextNumber, ...members.map(({ name }) => Number(name.slice(name.lastIndexOf('-') + 1)) + 1)])
}

/**
 * The members that a server uses: those that existed when it started.
 * @param startedMs absent in pid files of earlier versions: all members count
 */
export function membersAskedBy({ members }: Pick<EtcdPlan, 'members'>, { startedMs = Infinity }: { readonly startedMs?: number }): EtcdMemberPlan[] {
  return members.filter(({ addedMs }) => addedMs === undefined || addedMs < startedMs)
}

export const clientUrlOf = ({ clientPort }: EtcdMemberPlan) => `https://127.0.0.1:${clientPort}`
export const peerUrlOf = ({ peerPort }: Pick<EtcdMemberPlan, 'peerPort'>) => `https://127.0.0.1:${peerPort}`

export interface EtcdMemberPaths {
  readonly dir: string
  readonly data: string
  readonly log: string
  readonly pid: string
}

export function etcdFolder(paths: Pick<Places, 'dir'>): string {
  return path.join(paths.dir, 'etcd')
}

export function etcdMemberPaths(paths: Pick<Places, 'dir'>, name: string): EtcdMemberPaths {
  const dir = path.join(etcdFolder(paths), name)
  return { dir, data: path.join(dir, 'data'), log: path.join(dir, 'etcd.log'), pid: path.join(dir, 'etcd.pid') }
}

/** Where the certificates for etcd are; the names are kubeadm's. */
export function etcdPkiFolder(paths: Pick<Places, 'pki'>): string {
  return path.join(paths.pki, 'etcd')
}

/** The program and its arguments. @param self words that run Skiff */
export function etcdCommand(paths: Places, { token, members, embedded }: EtcdPlan, member: EtcdMemberPlan, self: readonly string[]): string[] {
  const [ca, cert, key] = ['ca.crt', 'server.crt', 'server.key'].map((file) => path.join(etcdPkiFolder(paths), file))
  const common = [
    `--name=${member.name}`,
    `--data-dir=${etcdMemberPaths(paths, member.name).data}`,
    `--listen-client-urls=${clientUrlOf(member)}`,
    `--advertise-client-urls=${clientUrlOf(member)}`,
    '--client-cert-auth=true',
    `--trusted-ca-file=${ca}`,
    `--cert-file=${cert}`,
    `--key-file=${key}`,
  ]
  if (embedded) return [...self, 'etcd', 'serve', ...common]
  const initial = member.joined ?? initialCluster(members)
  return [
    'etcd',
    ...common,
    `--listen-peer-urls=${peerUrlOf(member)}`,
    `--initial-advertise-peer-urls=${peerUrlOf(member)}`,
    `--initial-cluster=${initial}`,
    `--initial-cluster-state=${member.joined ? 'existing' : 'new'}`,
    `--initial-cluster-token=${token}`,
    '--peer-client-cert-auth=true',
    `--peer-trusted-ca-file=${ca}`,
    `--peer-cert-file=${cert}`,
    `--peer-key-file=${key}`,
    '--logger=zap',
    '--log-outputs=stderr',
    '--log-level=warn',
  ]
}

/** The members that the cluster began with. etcd reads it only in a member's first start. */
function initialCluster(members: readonly EtcdMemberPlan[]): string {
  return members
    .filter(({ joined }) => !joined)
    .map((one) => `${one.name}=${peerUrlOf(one)}`)
    .join(',')
}

/** kube-apiserver's flags for this etcd. */
export function etcdServerArgs(paths: Places, { members }: EtcdPlan): string[] {
  const file = (name: string) => path.join(etcdPkiFolder(paths), name)
  return [
    `--etcd-servers=${members.map(clientUrlOf).join(',')}`,
    `--etcd-cafile=${file('ca.crt')}`,
    `--etcd-certfile=${file('apiserver-etcd-client.crt')}`,
    `--etcd-keyfile=${file('apiserver-etcd-client.key')}`,
  ]
}
