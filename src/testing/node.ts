/**
 * A simulated node of a test cluster: the product's kubelet over the simulated runtime, with handles for what happens to machines. It crashes,
 * reboots, loses its connection, its runtime falls ill, its containers die.
 */
import { createClient } from '#client/clientOverTransport'
import type { KubeletConfig } from '#kubelet/core/config'
import { ownSources } from '#kubelet/core/kubeletSources'
import { createKubelet } from '#kubelet/kubelet'
import { tellingAnnotations } from '#kubelet/runtime/simulated/annotationChanges'
import { simulatedMachine } from '#kubelet/runtime/simulated/machine'
import type { SimulatedProfile } from '#kubelet/runtime/simulated/profile'
import { createSimulatedRuntime, type SimulatedEnding, type SimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { traceRuntime } from '#kubelet/runtime/tracedRuntime'
import { createResourceSampler } from '#kubelet/server/stats/resourceSample'
import type { OwnKubelets } from '#main/layouts/ownKubelets'
import type { ClusterTools } from './controlPlane.ts'
import { type KubeletCredentials, kubeletHost, runWithPort } from './kubeletPort.ts'
import { type Life, Part, type PartDeps } from './part.ts'

export interface NodeSpec {
  readonly name: string
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly taints?: KubeletConfig['registerWithTaints'] | undefined
  readonly cpus?: number | undefined
  readonly memoryBytes?: number | undefined
  readonly maxPods?: number | undefined
  /** How long its Lease holds; it is renewed after a quarter of that, and a node that is silent for 50 s is lost. Default 160. */
  readonly leaseSeconds?: number | undefined
}

export interface NodeSetup {
  readonly tools: ClusterTools
  readonly part: PartDeps
  readonly profile: SimulatedProfile
  /** Where pods get addresses while no controller hands out ranges. */
  readonly podCidr: string | undefined
  /** Absent: the kubelet has no port. */
  readonly kubeletCredentials: KubeletCredentials | undefined
  readonly ownKubelets: OwnKubelets
  /** The address of the node, which nothing connects to. */
  readonly address: string
}

export class SimulatedNode {
  readonly name: string
  readonly #spec: NodeSpec
  readonly #setup: NodeSetup
  /** The kubelet alone: it can stop, crash and start while containers run on. */
  readonly kubelet: Part
  #boots = 0
  #runtime: SimulatedRuntime

  constructor(spec: NodeSpec, setup: NodeSetup) {
    this.name = spec.name
    this.#spec = spec
    this.#setup = setup
    this.#runtime = this.#boot()
    this.kubelet = new Part(`kubelet/${spec.name}`, setup.part, (life) => this.#live(life))
  }

  get isRunning(): boolean {
    return this.kubelet.isRunning
  }

  /** Switches the machine on. What ran before a crash is gone. */
  start(): void {
    this.kubelet.start()
  }

  /** Power failure: kubelet and containers end at once, without a message to the API server. */
  crash(): void {
    this.kubelet.crash()
    this.#runtime = this.#boot()
  }

  /** A crash, and up again at once with another boot id. */
  reboot(): void {
    this.crash()
    this.start()
  }

  /** The connection to the API server is lost; the pods run on. */
  partition(): void {
    this.kubelet.partition(true)
  }

  heal(): void {
    this.kubelet.partition(false)
  }

  /** The container runtime fails, and the kubelet reports it. */
  notReady(message = 'a fault on purpose'): void {
    this.#runtime.setUnwell(message)
  }

  ready(): void {
    this.#runtime.setUnwell(undefined)
  }

  /** Ends running containers of a pod on this node; returns their number. Exit code 137 with reason OOMKilled simulates the kernel. */
  exit(pod: { readonly namespace: string; readonly name: string }, ending: SimulatedEnding): number {
    return this.#runtime.exit(pod, ending)
  }

  /** Lets running containers of a pod on this node print a text; returns their number. `container` absent: all. */
  print(pod: { readonly namespace: string; readonly name: string }, text: string, container?: string): number {
    return this.#runtime.log(pod, text, container)
  }

  /** For the cluster: resolves when all its parts have ended. */
  gone(): Promise<void> {
    return this.kubelet.gone()
  }

  #boot(): SimulatedRuntime {
    const { tools, profile, podCidr } = this.#setup
    this.#boots++
    return createSimulatedRuntime({ clock: tools.clock, random: tools.random(`runtime/${this.name}/${this.#boots}`), profile, podCidr })
  }

  #live(life: Life): Promise<void> {
    const { tools, kubeletCredentials, ownKubelets, address } = this.#setup
    const { labels = {}, taints = [], cpus = 16, memoryBytes = 64 * 2 ** 30, maxPods = 110, leaseSeconds = 160 } = this.#spec
    const user = { name: `system:node:${this.name}`, groups: ['system:nodes', 'system:authenticated'] }
    const client = createClient(life.link(user, 'kubelet'))
    const log = tools.log.with('kubelet', { node: this.name })
    const own = ownSources({ client, clock: tools.clock, log })
    const sources = { ...own, pods: tellingAnnotations(own.pods, this.#runtime) }
    const create = (port: number | undefined) => {
      const kubelet = createKubelet(
        {
          client,
          sources,
          log,
          clock: tools.clock,
          metrics: tools.metrics,
          tracer: tools.tracer,
          trace: tools.trace,
          random: tools.random(`kubelet/${this.name}`),
          runtime: traceRuntime(this.#runtime, tools.trace, this.name),
          machine: simulatedMachine(this.name, { cpus, memoryBytes, bootID: `${this.name}-${this.#boots}` }),
        },
        {
          nodeName: this.name,
          nodeIPs: [address],
          nodeLabels: { 'skiff.dev/runtime': 'simulated', ...labels },
          registerWithTaints: taints,
          maxPods,
          nodeLeaseDurationSeconds: leaseSeconds,
          // A simulated runtime reports every change, so no relist is needed.
          relistPeriodMs: 0,
          syncFrequencyMs: 0,
          ...(port === undefined ? {} : { port }),
        },
      )
      const sample = createResourceSampler(kubelet.view, tools.clock)
      ownKubelets.addMeter(this.name, async () => {
        if (life.signal.aborted) throw new Error('the kubelet is not running')
        return sample()
      })
      return kubelet
    }
    if (!kubeletCredentials) return create(undefined).run(life.signal)
    const { activity } = this.#setup.part
    const withPort = (port: number) => {
      ownKubelets.add(this.name, { address, port, listensOn: kubeletHost })
      return create(port)
    }
    return runWithPort({ client, log, activity, clock: tools.clock }, kubeletCredentials, this.name, withPort, life.signal)
  }
}
