/**
 * What plugins work out for one pod in one cycle, for their own later steps (L3). Preemption tries its ideas on clones.
 * Upstream: pkg/scheduler/framework/cycle_state.go.
 */

/** Data that addPod or removePod change has a clone; data that stays as it is needs none and is shared. */
export interface StateData {
  clone?(): StateData
}

/** Names a plugin's data and carries its type. */
export interface StateKey<T extends StateData> {
  readonly name: string
  /** Never set. */
  readonly type?: T
}

export function stateKey<T extends StateData>(name: string): StateKey<T> {
  return { name }
}

export class CycleState {
  readonly #data = new Map<string, StateData>()
  /** Plugins whose PreFilter or PreScore returned Skip for this pod. */
  readonly skipFilter: Set<string>
  readonly skipScore: Set<string>

  constructor(skipFilter: Iterable<string> = [], skipScore: Iterable<string> = []) {
    this.skipFilter = new Set(skipFilter)
    this.skipScore = new Set(skipScore)
  }

  read<T extends StateData>(key: StateKey<T>): T | undefined {
    return this.#data.get(key.name) as T | undefined
  }

  write<T extends StateData>(key: StateKey<T>, data: T): void {
    this.#data.set(key.name, data)
  }

  delete(key: StateKey<StateData>): void {
    this.#data.delete(key.name)
  }

  clone(): CycleState {
    const copy = new CycleState(this.skipFilter, this.skipScore)
    for (const [name, data] of this.#data) copy.#data.set(name, data.clone?.() ?? data)
    return copy
  }
}
