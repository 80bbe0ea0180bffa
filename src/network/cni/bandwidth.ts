/**
 * The bandwidth of a pod (L3): a token bucket on the node's end of the link limits what the pod receives. What it sends is led through a device of its own with
 * another bucket, since the kernel shapes only packets that leave a device. Upstream's counterpart: the reference plugin bandwidth.
 */
import { createHash } from 'node:crypto'
import { check, type Exec } from '#host/exec'
import type { Attachment } from './addresses.ts'
import { hostInterfaceOf } from './podLink.ts'

interface Limit {
  /** Bits per second. */
  readonly rate: number
  /** Bits that may pass at once. */
  readonly burst: number
}

/** As the pod sees it: what it receives, and what it sends. */
export interface Bandwidth {
  readonly ingress?: Limit | undefined
  readonly egress?: Limit | undefined
}

const mostBurstBits = 8 * 0xffff_ffff

/**
 * The runtime's request. containerd writes the names of the fields with a capital letter, others without, and plugins in Go read both.
 * @throws Error with the reference plugin's text
 */
export function bandwidthOf(given: object): Bandwidth {
  const fields = new Map(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]))
  const limit = (direction: 'ingress' | 'egress'): Limit | undefined => {
    const [rate, burst] = [`${direction}rate`, `${direction}burst`].map((name) => Number(fields.get(name) ?? 0)) as [number, number]
    if (!(rate >= 0 && burst >= 0)) throw new Error(`bandwidth: the ${direction} rate and burst must be numbers of bits`)
    if (burst === 0 && rate !== 0) throw new Error('if rate is set, burst must also be set')
    if (rate === 0 && burst !== 0) throw new Error('if burst is set, rate must also be set')
    if (burst >= mostBurstBits) throw new Error('burst cannot be more than 4GB')
    return rate === 0 ? undefined : { rate, burst }
  }
  return { ingress: limit('ingress'), egress: limit('egress') }
}

/** The device through which the pod's packets are led; at most 15 characters. */
function shapingDeviceOf({ containerId, ifname }: Attachment): string {
  return `bwp${createHash('sha256').update(`${containerId}/${ifname}`).digest('hex').slice(0, 12)}`
}

/** How long a packet may wait in the queue of a bucket. */
const latencySeconds = 0.025
const mostBytes = 0xffff_ffff
/** The kernel keeps a bucket as the time in which it fills, in a field of 32 bits that counts 64 nanoseconds. */
const longestFillSeconds = (0xffff_ffff * 64) / 1e9

/** tc's words for the bucket of a device. */
function bucket(device: string, { rate, burst }: Limit): string {
  const bytesPerSecond = Math.floor(rate / 8)
  const burstBytes = Math.max(1, Math.floor(Math.min(burst / 8, bytesPerSecond * longestFillSeconds)))
  const limitBytes = Math.min(mostBytes, Math.floor(bytesPerSecond * latencySeconds) + burstBytes)
  return `qdisc add dev ${device} root handle 1: tbf rate ${bytesPerSecond * 8}bit burst ${burstBytes} limit ${limitBytes}`
}

/** tc's words that lead what comes in at a device through another. */
const redirection = (from: string, through: string) => [
  `qdisc add dev ${from} handle ffff: ingress`,
  `filter add dev ${from} parent ffff: protocol all prio 1 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ${through}`,
]

const inBatch = (lines: readonly string[]) => ({ input: `${lines.join('\n')}\n` })

interface ShapedLink {
  readonly attachment: Attachment
  readonly bandwidth: Bandwidth
  readonly mtu?: number | undefined
}

/** Limits the pod's link, which has no limits yet. @returns the name of the device that was made for it, if one was. @throws Error when a command fails */
export async function limitBandwidth(exec: Exec, { attachment, bandwidth: { ingress, egress }, mtu }: ShapedLink): Promise<string | undefined> {
  const host = hostInterfaceOf(attachment)
  const device = shapingDeviceOf(attachment)
  if (egress) await check(exec, 'ip', ['-batch', '-'], inBatch([`link add ${device}${mtu ? ` mtu ${mtu}` : ''} type ifb`, `link set ${device} up`]))
  const lines = [...(ingress ? [bucket(host, ingress)] : []), ...(egress ? [...redirection(host, device), bucket(device, egress)] : [])]
  if (lines.length > 0) await check(exec, 'tc', ['-batch', '-'], inBatch(lines))
  return egress ? device : undefined
}

/** The limits of a link end with it; the device that was made for them does not. An absent one is fine. */
export async function removeBandwidth(exec: Exec, attachment: Attachment): Promise<void> {
  await exec.run('ip', ['link', 'del', shapingDeviceOf(attachment)])
}

interface ShownQdisc {
  readonly kind: string
  readonly options?: { readonly rate?: number }
}

/** @throws Error when the kernel lacks a limit */
export async function checkBandwidth(exec: Exec, attachment: Attachment, { ingress, egress }: Bandwidth): Promise<void> {
  const expected = [ingress && { device: hostInterfaceOf(attachment), limit: ingress }, egress && { device: shapingDeviceOf(attachment), limit: egress }]
  for (const { device, limit } of expected.filter((one) => one !== undefined)) {
    const text = await check(exec, 'tc', ['-json', 'qdisc', 'show', 'dev', device])
    const isThere = (JSON.parse(text || '[]') as ShownQdisc[]).some(({ kind, options }) => kind === 'tbf' && options?.rate === Math.floor(limit.rate / 8))
    if (!isThere) throw new Error(`device ${device} lacks the limit of ${limit.rate} bits per second`)
  }
}

/** Made in a network namespace of the trial's own, which ends with it. */
const trial = [...redirection('trial', 'trial'), bucket('trial', { rate: 1000, burst: 100_000 })]

/** Why the kernel cannot limit the bandwidth of pods. @returns undefined when it can */
export async function bandwidthObstacle(exec: Exec): Promise<string | undefined> {
  const script = 'ip link add trial type ifb && exec tc -batch -'
  const { code, stderr } = await exec.run('unshare', ['--net', 'sh', '-c', script], { ...inBatch(trial), timeoutMs: 10_000 })
  if (code === 0) return undefined
  if (code === -1 || code === 127) return `${code === -1 ? 'unshare' : 'tc'} is not installed`
  return `the kernel lacks one of ifb, sch_tbf, sch_ingress, cls_u32 and act_mirred (${stderr.trim().split('\n')[0]})`
}
