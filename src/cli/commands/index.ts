/** The commands, in the order that --help shows (L4). */
import type { CliCommand } from '../command.ts'
import { addon } from './addon.ts'
import { at } from './at.ts'
import { bundle } from './bundle.ts'
import { calls } from './calls.ts'
import { certs } from './certs.ts'
import { completion } from './completion.ts'
import { debug } from './debug.ts'
import { deleteCluster } from './delete.ts'
import { diff } from './diff.ts'
import { doctor } from './doctor.ts'
import { etcd } from './etcd.ts'
import { explain } from './explain.ts'
import { exportCommand } from './export.ts'
import { fork } from './fork.ts'
import { history } from './history.ts'
import { image } from './image.ts'
import { importCommand } from './import.ts'
import { kubeconfig } from './kubeconfig.ts'
import { lab } from './lab.ts'
import { logs } from './logs.ts'
import { net } from './net.ts'
import { nodegroup } from './nodegroup.ts'
import { nodes } from './nodes.ts'
import { prune } from './prune.ts'
import { server } from './server.ts'
import { simulate } from './simulate.ts'
import { snapshot } from './snapshot.ts'
import { ls, status } from './status.ts'
import { stop } from './stop.ts'
import { token } from './token.ts'
import { trace } from './trace.ts'
import { ui } from './ui.ts'
import { start, up } from './up.ts'
import { why } from './why.ts'

export const commands: readonly CliCommand[] = [
  up,
  stop,
  start,
  deleteCluster,
  prune,
  ls,
  status,
  nodes,
  nodegroup,
  simulate,
  why,
  ui,
  explain,
  trace,
  net,
  calls,
  debug,
  at,
  history,
  diff,
  fork,
  bundle,
  lab,
  logs,
  doctor,
  kubeconfig,
  certs,
  etcd,
  addon,
  token,
  server,
  snapshot,
  exportCommand,
  importCommand,
  image,
  completion,
]
