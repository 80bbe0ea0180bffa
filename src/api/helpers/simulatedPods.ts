/** What simulated nodes and pods are known by (L1). */

/** The label of a simulated node, and its value. */
export const runtimeLabel = { key: 'skiff.dev/runtime', simulated: 'simulated' } as const

/** Every annotation about the behaviour of a simulated pod begins with it. */
export const simulatedPrefix = 'skiff.dev/simulated-'
