// Foxglove's own reader of ROS 2 messages: {definition, data (hex)} for each line in, the message as JSON out.
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");
const lines = require("fs").readFileSync(0, "utf8").trim().split("\n");
for (const line of lines) {
  const { definition, data } = JSON.parse(line);
  const reader = new MessageReader(parse(definition, { ros2: true }));
  const message = reader.readMessage(new Uint8Array(Buffer.from(data, "hex")));
  console.log(
    JSON.stringify(message, (_, value) =>
      ArrayBuffer.isView(value) ? Array.from(value, Number) : typeof value === "bigint" ? Number(value) : value,
    ),
  );
}
