/** The names of boxes. */

import { operand } from "./call.js";

/** A box with a name. */
export class Handle {
  /** The name by which `boxlaunch` knows the box. */
  readonly name: string;

  constructor(name: string) {
    this.name = operand(name);
  }
}
