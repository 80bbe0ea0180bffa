/** The commands, in the order that --help shows (L4). */
import type { CliCommand } from '../command.ts'
import { addon } from './addon.ts'
import { at } from './at.ts'
import { certs } from './certs.ts'
import { completion } from './completion.ts'
import { deleteCluster } from './delete.ts'
import { diff } from './diff.ts'
import { doctor } from './doctor.ts'
import { etcd } from './etcd.ts'
import { exportCommand } from './export.ts'
import { fork } from './fork.ts'
import { history } from './history.ts'
import { image } from './image.ts'
import { importCommand } from './import.ts'
import { kubeconfig } from './kubeconfig.ts'
import { logs } from './logs.ts'
import { net } from './net.ts'
import { prune } from './prune.ts'
import { snapshot } from './snapshot.ts'
import { ls, status } from './status.ts'
import { stop } from './stop.ts'
import { token } from './token.ts'
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
  why,
  net,
  at,
  history,
  diff,
  fork,
  logs,
  doctor,
  kubeconfig,
  certs,
  etcd,
  addon,
  token,
  snapshot,
  exportCommand,
  importCommand,
  image,
  completion,
]
