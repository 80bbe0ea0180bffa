/**
 * Divides seats among priority levels (L3): each gets the same proportion of its target, within its bounds. Pure.
 * Upstream: apiserver/pkg/util/flowcontrol/conc_alloc.go.
 */
export interface AllocationClass {
  /** At least the lower bound; less than a thousandth counts as a thousandth. */
  readonly target: number
  readonly lowerBound: number
  readonly upperBound: number
}

export interface Allocation {
  /** One per class; their sum is the required one. */
  readonly allocations: readonly number[]
  readonly fairProportion: number
}

const leastTarget = 0.001
const epsilon = 1e-7

/** Undefined when no division keeps all bounds. */
export function allocateConcurrency(requiredSum: number, classes: readonly AllocationClass[]): Allocation | undefined {
  const sumOf = (value: (one: AllocationClass) => number) => classes.reduce((sum, one) => sum + value(one), 0)
  const lowSum = sumOf((one) => one.lowerBound)
  const highSum = sumOf((one) => one.upperBound)
  const isValid = classes.every(({ target, lowerBound, upperBound }) => lowerBound >= 0 && target >= lowerBound && upperBound >= lowerBound)
  if (!isValid || requiredSum < 0 || lowSum - requiredSum > epsilon || requiredSum - highSum > epsilon) return undefined
  if (requiredSum === 0) return { allocations: classes.map(() => 0), fairProportion: 0 }
  const targets = classes.map(({ target }) => Math.max(target, leastTarget))
  const proportion = fairProportion(requiredSum, classes, targets)
  const allocations = classes.map(({ lowerBound, upperBound }, i) => Math.max(lowerBound, Math.min(upperBound, proportion * (targets[i] as number))))
  return { allocations, fairProportion: proportion }
}

interface Bound {
  readonly proportion: number
  /** Growth of the sum per unit of the proportion, from here on. */
  readonly slope: number
}

/** The sum grows with the proportion along straight pieces, which meet where a class leaves its lower bound or reaches its upper one. */
function fairProportion(requiredSum: number, classes: readonly AllocationClass[], targets: readonly number[]): number {
  const bounds = classes.flatMap(({ lowerBound, upperBound }, i): Bound[] => {
    const target = targets[i] as number
    return [
      { proportion: lowerBound / target, slope: target },
      { proportion: upperBound / target, slope: -target },
    ]
  })
  bounds.sort((a, b) => a.proportion - b.proportion)
  let proportion = bounds[0]?.proportion ?? 0
  let sum = classes.reduce((total, { lowerBound }) => total + lowerBound, 0)
  let slope = 0
  for (const bound of bounds) {
    const grown = sum + slope * (bound.proportion - proportion)
    if (grown >= requiredSum && slope > 0) return proportion + (requiredSum - sum) / slope
    sum = grown
    proportion = bound.proportion
    slope += bound.slope
  }
  return proportion
}
