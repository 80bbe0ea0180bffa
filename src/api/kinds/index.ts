/** The list of kinds that have a file of their own (L1), in the order of upstream's groups. Adding a kind is one line here. */
import type { KindStrategy } from './defineKind.ts'

export const strategies: readonly KindStrategy[] = []

/** The strategy of a kind, or undefined when the generic rules are all there is. */
export function strategyFor(group: string, kind: string): KindStrategy | undefined {
  return strategies.find((strategy) => strategy.group === group && strategy.kind === kind)
}
