/** The rules of a NetworkPolicy in words (L3), pure. */
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '#api/gen/types/networking.v1'
import { formatLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import type { Direction } from './compilePolicy.ts'

/** One text for each rule of the direction, such as `from pods with app=web: TCP 80`. */
export function ruleTexts({ spec }: Frozen<NetworkPolicy>, direction: Direction): string[] {
  if (direction === 'ingress') return (spec?.ingress ?? []).map(({ from, ports }) => `from ${peersText(from)}: ${portsText(ports)}`)
  return (spec?.egress ?? []).map(({ to, ports }) => `to ${peersText(to)}: ${portsText(ports)}`)
}

function peersText(peers: readonly Frozen<NetworkPolicyPeer>[] | undefined): string {
  return peers?.length ? peers.map(peerText).join(' or ') : 'everywhere'
}

function peerText({ ipBlock, namespaceSelector, podSelector }: Frozen<NetworkPolicyPeer>): string {
  if (ipBlock) return ipBlock.except?.length ? `${ipBlock.cidr} except ${ipBlock.except.join(', ')}` : ipBlock.cidr
  const pods = selected('pods', podSelector)
  return namespaceSelector ? `${pods} in ${selected('namespaces', namespaceSelector)}` : `${pods} of the namespace`
}

function selected(what: string, selector: Parameters<typeof formatLabelSelector>[0]): string {
  const isEverything = !selector?.matchExpressions?.length && Object.keys(selector?.matchLabels ?? {}).length === 0
  return isEverything ? `all ${what}` : `${what} with ${formatLabelSelector(selector)}`
}

function portsText(ports: readonly Frozen<NetworkPolicyPort>[] | undefined): string {
  return ports?.length ? ports.map(portText).join(', ') : 'every port'
}

function portText({ protocol = 'TCP', port, endPort }: Frozen<NetworkPolicyPort>): string {
  if (port === undefined) return `every ${protocol} port`
  return `${protocol} ${port}${endPort === undefined ? '' : `-${endPort}`}`
}
