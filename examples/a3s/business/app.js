"use strict";

// The business application. Its agent starts it, and asks it over the loopback that both components share.
const express = require("express");

const app = express();
app.get("/answer", (request, response) => {
  response.type("text").send(`${process.env.GREETING}: ${request.query.prompt}`);
});
app.listen(Number(process.env.PORT), "127.0.0.1");
