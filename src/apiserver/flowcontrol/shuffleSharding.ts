/**
 * Deals each flow a hand of queues (L3), by the flow's hash: two flows rarely have the same hand, so one that floods its queues leaves others
 * at least one that is free. Pure. Upstream: apiserver/pkg/util/shufflesharding, flowcontrol hashFlowID.
 */
import { createHash } from 'node:crypto'

/** Upstream's hash, so that a flow has the same queues on servers of both kinds. */
export function hashFlow(flowSchema: string, distinguisher: string): bigint {
  return createHash('sha256').update(flowSchema).update('\0').update(distinguisher).digest().readBigUInt64LE()
}

/** `handSize` different numbers below `deckSize`, in the order that they are dealt. */
export function dealHand(hash: bigint, deckSize: number, handSize: number): number[] {
  const hand: number[] = []
  const remainders: number[] = []
  let rest = hash
  for (let i = 0; i < handSize; i++) {
    const left = BigInt(deckSize - i)
    remainders.push(Number(rest % left))
    rest /= left
  }
  for (let i = 0; i < handSize; i++) {
    let card = remainders[i] as number
    for (let j = i; j > 0; j--) if (card >= (remainders[j - 1] as number)) card++
    hand.push(card)
  }
  return hand
}
