/**
 * The link between a pod and its node (L3): a pair of veth devices, one in each namespace, with a host route to each of the pod's addresses. The pod reaches
 * everything through the node. Upstream's counterpart: the reference plugin ptp.
 */
import { createHash } from 'node:crypto'
import { isIpv6 } from '#api/machinery/ip'
import { check, type Exec } from '#host/exec'
import type { Attachment, PodAddress } from './addresses.ts'

export interface PodLink {
  readonly attachment: Attachment
  /** The path of the pod's network namespace. */
  readonly netns: string
  readonly addresses: readonly PodAddress[]
  readonly mtu?: number | undefined
}

/** At most 15 characters. The rules of the node know its pods' links by the beginning of the name. */
export function hostInterfaceOf({ containerId, ifname }: Attachment): string {
  return `veth${createHash('sha256').update(`${containerId}/${ifname}`).digest('hex').slice(0, 8)}`
}

/** Words that run a program in the pod's network namespace. */
const within = (netns: string) => [`--net=${netns}`, '--'] as const
/** The range of the address alone. */
export const alone = (ip: string) => `${ip}/${isIpv6(ip) ? 128 : 32}`
const noProbe = (ip: string) => (isIpv6(ip) ? ' nodad' : '')

/** @throws Error when a command fails: the link is then removed */
export async function makeLink(exec: Exec, { attachment, netns, addresses, mtu }: PodLink): Promise<void> {
  const { ifname } = attachment
  const host = hostInterfaceOf(attachment)
  const size = mtu ? ` mtu ${mtu}` : ''
  const batch = (lines: readonly string[]) => ({ input: `${lines.join('\n')}\n` })
  await exec.run('ip', ['link', 'del', host])
  await check(exec, 'ip', ['-batch', '-'], batch([`link add ${host}${size} type veth peer name ${ifname} netns ${netns}${size}`]))
  try {
    const inside = [
      'link set lo up',
      ...addresses.map(({ ip }) => `addr add ${alone(ip)} dev ${ifname}${noProbe(ip)}`),
      `link set ${ifname} up`,
      ...addresses.flatMap(({ gateway }) => [`route add ${alone(gateway)} dev ${ifname}`, `route add default via ${gateway} dev ${ifname}`]),
    ]
    await check(exec, 'nsenter', [...within(netns), 'ip', '-batch', '-'], batch(inside))
    const outside = [
      ...addresses.map(({ gateway }) => `addr add ${alone(gateway)} dev ${host}${noProbe(gateway)}`),
      `link set ${host} up`,
      ...addresses.map(({ ip }) => `route add ${alone(ip)} dev ${host}`),
    ]
    await check(exec, 'ip', ['-batch', '-'], batch(outside))
  } catch (error) {
    await exec.run('ip', ['link', 'del', host])
    throw error
  }
}

/** An absent link is fine: it ends with the pod's namespace. */
export async function removeLink(exec: Exec, attachment: Attachment): Promise<void> {
  await exec.run('ip', ['link', 'del', hostInterfaceOf(attachment)])
}

interface ShownAddresses {
  readonly address?: string
  readonly addr_info?: readonly { readonly local: string }[]
}

/** The pod's end: its MAC address and its addresses; undefined when there is none. */
export async function linkInPod(exec: Exec, { attachment, netns }: Pick<PodLink, 'attachment' | 'netns'>): Promise<{ mac: string; ips: string[] } | undefined> {
  const { code, stdout } = await exec.run('nsenter', [...within(netns), 'ip', '-json', 'addr', 'show', 'dev', attachment.ifname])
  const [link] = code === 0 ? (JSON.parse(stdout || '[]') as ShownAddresses[]) : []
  return link && { mac: link.address ?? '', ips: (link.addr_info ?? []).map(({ local }) => local) }
}
