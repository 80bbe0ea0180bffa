/** The commands, in the order that --help shows (L4). */
import type { CliCommand } from '../command.ts'
import { certs } from './certs.ts'
import { completion } from './completion.ts'
import { deleteCluster } from './delete.ts'
import { doctor } from './doctor.ts'
import { image } from './image.ts'
import { kubeconfig } from './kubeconfig.ts'
import { logs } from './logs.ts'
import { ls, status } from './status.ts'
import { stop } from './stop.ts'
import { start, up } from './up.ts'
import { why } from './why.ts'

export const commands: readonly CliCommand[] = [up, stop, start, deleteCluster, ls, status, why, logs, doctor, kubeconfig, certs, image, completion]
